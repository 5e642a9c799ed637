// The module. No mathematics here: arrays in, arrays out.
#include "bind/encode.hpp"
#include "bind/exact.hpp"
#include "bind/forest.hpp"
#include "bind/growing.hpp"
#include "bind/online.hpp"
#include "bind/posterior.hpp"
#include "bind/scan.hpp"
#include "bind/student.hpp"

using namespace everytree;
using nb::literals::operator""_a;

NB_MODULE(_kernels, module) {
    module.doc() = "Kernels of everytree: flat arrays in, flat arrays out.";

    Guard::watch_forks();
    nb::class_<Guard::Writing>(module, "Writing")
        .def("__enter__", &Guard::Writing::lock)
        .def("__exit__", [](Guard::Writing& self, nb::args) { self.unlock(); });
    nb::class_<Guard>(module, "Guard")
        .def(nb::init<>())
        .def("__enter__", &Guard::lock)
        .def("__exit__", [](Guard& self, nb::args) { self.unlock(); })
        .def_prop_ro(
            "writing", [](Guard& self) -> Guard::Writing& { return self.writing; }, nb::rv_policy::reference_internal);

    nb::class_<Tree>(module, "Tree")
        .def(nb::init<Input<std::uint8_t>, std::optional<Input<std::uint64_t>>, Input<std::int32_t>,
                      Input<std::int32_t>, Input<std::int32_t>, Input<std::int32_t>, Input<std::uint16_t>,
                      Input<std::uint16_t>, int, int, bool>(),
             "routes"_a, "binary_routes"_a.none(), "first_child"_a, "n_children"_a, "parent"_a, "depth"_a, "limit"_a,
             "shift"_a, "shallowest"_a, "deepest"_a, "exact_width"_a)
        .def("route", &Tree::route_rows, "X"_a.none(), "n_jobs"_a)
        .def("upward_closure", &Tree::upward_closure, "ends"_a)
        .def("sweep", &Tree::sweep)
        .def("paths", &Tree::paths);

    module.def("top_trees", &top_trees);

    module.def("log_rising", [](Input<double> x, Input<double> n) { return over_entries(log_rising, x, n); });
    module.def("log_beta_ratio", [](Input<double> a, Input<double> b, Input<double> more_a, Input<double> more_b) {
        return over_entries(
            [](double one, double two, double more_one, double more_two) {
                const double x[2] = {one, two}, n[2] = {more_one, more_two};
                double scratch[2];
                return log_beta_ratio(x, n, 2, log_beta(x, 2), scratch);
            },
            a, b, more_a, more_b);
    });
    module.def("log_negative_binomial", [](Input<double> k, Input<double> shape, Input<double> odds) {
        return over_entries(log_negative_binomial, k, shape, odds);
    });

    module.def("family_shape", [](const std::string& name, int size) {
        return with_family(name, size,
                           [](const auto& family) { return nb::make_tuple(family.layout.size(), family.n_hyper); });
    });
    module.def("prepare_prior", &prepare_prior);
    module.def("posterior_parameters", &posterior_parameters);
    module.def("log_evidence", &log_evidence);
    module.def("linear_predictions", &linear_predictions);
    module.def("sum_statistics", &sum_statistics);
    module.def("row_statistics", &row_statistics, "name"_a, "size"_a, "y"_a, "weight"_a.none(), "extra"_a.none(),
               "constant"_a, "n_rows"_a);

    nb::class_<SharedPlan>(module, "SharedPlan").def("__init__", [](SharedPlan* self, const std::vector<Tree*>& trees) {
        std::vector<TreeView> views;
        for (const Tree* tree : trees) {
            if (tree == nullptr) throw std::invalid_argument("trees must not be None");
            views.push_back(tree->view);
        }
        new (self) SharedPlan(views);
    });

    nb::class_<PosteriorHandle>(module, "Posterior")
        .def("update", &PosteriorHandle::update, "X"_a.none(), "y"_a.none(), "weight"_a.none(), "extra"_a.none(),
             "n_jobs"_a)
        .def("merge", &PosteriorHandle::merge)
        .def("leave_one_out", &PosteriorHandle::leave_one_out, "X"_a.none(), "y"_a.none(), "weight"_a.none(),
             "extra"_a.none(), "n_jobs"_a)
        .def_rw("version", &PosteriorHandle::version)
        .def("__enter__", [](PosteriorHandle& self) { self.guard.lock(); })
        .def("__exit__", [](PosteriorHandle& self, nb::args) { self.guard.unlock(); })
        .def_prop_ro(
            "writing", [](PosteriorHandle& self) -> Guard::Writing& { return self.guard.writing; },
            nb::rv_policy::reference_internal)
        .def("update_shared", &PosteriorHandle::update_shared, "plan"_a, "all"_a, "X"_a.none(), "y"_a.none(),
             "weight"_a.none(), "extra"_a.none(), "n_jobs"_a);
    module.def("make_posterior", &make_posterior);

    nb::class_<ExactHandle>(module, "Exact")
        .def("run", &ExactHandle::run, "regions"_a, "expansions"_a, "seconds"_a, "progress"_a.none())
        .def("n_expanded", &ExactHandle::n_expanded)
        .def("log_upper", &ExactHandle::log_upper)
        .def("threshold", &ExactHandle::threshold)
        .def("left_out", &ExactHandle::left_out)
        .def("leaves", &ExactHandle::leaves)
        .def("feature_use", &ExactHandle::feature_use)
        .def("log_evidence", &ExactHandle::log_evidence)
        .def("n_regions", &ExactHandle::n_regions)
        .def("region", &ExactHandle::region)
        .def("summary", &ExactHandle::summary);
    module.def("make_exact", &make_exact);
    module.def("tabulate", &tabulate);
    module.def("leaves_of_rows", &leaves_of_rows);
    nb::class_<TablesHandle>(module, "Tables")
        .def(nb::init<Input<std::int64_t>, Input<std::int32_t>, Input<std::int64_t>, Input<std::int32_t>,
                      Input<std::int64_t>, Input<double>, std::int64_t, Input<std::int32_t>>())
        .def("look_up", &TablesHandle::look_up);

    module.def("student_tails", &student_tails);
    module.def("student_quantiles", &student_quantiles);
    nb::class_<StudentMixtures>(module, "StudentMixtures")
        .def(nb::init<Input<std::int64_t>, Input<double>, Input<double>, Input<double>, Input<double>>())
        .def("tails", &StudentMixtures::tails)
        .def("extra_distances", &StudentMixtures::extra_distances);

    nb::class_<ForestHandle>(module, "Forest")
        .def(nb::init<std::vector<nb::object>, Input<std::uint16_t>>(), "trees"_a, "known"_a)
        .def("ends", &ForestHandle::ends, "X"_a.none(), "n_jobs"_a)
        .def("average", &ForestHandle::average, "X"_a.none(), "values"_a, "weights"_a, "n_values"_a, "n_jobs"_a)
        .def("count", &ForestHandle::count, "name"_a, "size"_a, "statistics"_a, "n_rows"_a, "X"_a.none(), "y"_a.none(),
             "weight"_a.none(), "extra"_a.none(), "constant"_a, "n_jobs"_a)
        .def("add", &ForestHandle::add, "name"_a, "size"_a, "statistics"_a, "n_rows"_a, "more"_a, "n_more"_a);
    module.def("average_over_paths", &average_over_paths);
    module.def("log_node_fates", &node_fates);
    module.def("pooled_paths", &pooled_paths);
    module.def("predict_held_out", &predict_held_out, "name"_a, "size"_a, "tree"_a, "statistics"_a, "priors"_a,
               "log_split"_a, "log_stop"_a, "ends"_a, "counted"_a, "y"_a, "weight"_a.none(), "extra"_a.none(),
               "constant"_a, "scored"_a, "group_start"_a);
    module.def("held_out_components", &held_out_components, "name"_a, "size"_a, "tree"_a, "statistics"_a, "prior"_a,
               "log_split"_a, "log_stop"_a, "ends"_a, "counted"_a, "y"_a, "weight"_a.none(), "extra"_a.none(),
               "constant"_a, "scored"_a, "group_start"_a);

    nb::class_<GrowingHandle>(module, "Growing")
        .def("attach",
             [](GrowingHandle& self, State<std::int32_t> nodes, nb::object points, State<double> log_odds,
                State<double> statistics, State<double> leaf, State<double> subtree, State<double> split_prob,
                State<std::int64_t> counts) {
                 self.attach({nodes, points, log_odds, statistics, leaf, subtree, split_prob, counts});
             })
        .def("check", &GrowingHandle::check, "X"_a.none(), "y"_a.none(), "weight"_a.none(), "extra"_a.none())
        .def("insert", &GrowingHandle::insert, "X"_a.none(), "y"_a.none(), "weight"_a.none(), "extra"_a.none(),
             "begin"_a, "n"_a)
        .def("insert_points", &GrowingHandle::insert_points)
        .def("shares", &GrowingHandle::shares, "X"_a.none());
    module.def("make_growing", &make_growing);
    module.def("feature_after", &feature_after);

    nb::class_<OnlineHandle>(module, "Online")
        .def("attach",
             [](OnlineHandle& self, State<std::uint8_t> nodes, State<double> boxes, State<std::uint8_t> some_missing,
                State<double> statistics, State<double> ranges, Input<std::uint8_t> kinds, State<std::int32_t> roots,
                State<std::int64_t> counts) {
                 self.attach({nodes, boxes, some_missing, statistics, ranges, kinds, roots, counts});
             })
        .def("use_family", &OnlineHandle::use_family)
        .def("settle", &OnlineHandle::settle)
        .def("learn", &OnlineHandle::learn)
        .def("predict", &OnlineHandle::predict)
        .def("shares", &OnlineHandle::shares)
        .def("refresh", &OnlineHandle::refresh);
    module.def("make_online", &make_online);
    module.def("encode_dicts", &encode_dicts);
    module.attr("LARGEST_FEATURE") = largest_feature;
    module.def("scan_numbers", &scan_numbers, "numbers"_a, "known"_a.none(), "most"_a);
    module.def("draw_rows", &draw_rows, "seed"_a, "first_row"_a, "n_rows"_a, "bound"_a);

    nb::class_<Encoder>(module, "Encoder")
        .def(nb::init<Input<double>, Input<std::int64_t>, Input<std::uint8_t>,
                      const std::vector<Input<std::int32_t>>&>(),
             "cuts"_a, "start"_a, "single"_a, "groups"_a = std::vector<Input<std::int32_t>>())
        .def("encode", &Encoder::encode<std::uint8_t>, "columns"_a, "out"_a.noconvert(), "n_jobs"_a)
        .def("encode", &Encoder::encode<std::uint16_t>, "columns"_a, "out"_a.noconvert(), "n_jobs"_a);
}
