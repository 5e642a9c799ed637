// Mixtures of Student's t.
#include "bind/common.hpp"
#include "bind/modules.hpp"
#include "distributions/student_forest.hpp"
#include "distributions/student_units.hpp"

namespace everytree::bind {

using namespace distributions;
namespace {

using Numbers = Input<double>;
using Starts = Input<std::int64_t>;

StudentUnits units_of(const Starts& start, const Numbers& weight, const Numbers& freedom, const Numbers& location,
                      const Numbers& scale) {
    return {to_span(start), to_span(weight), to_span(freedom), to_span(location), to_span(scale)};
}

// (n_units, 2): P(Y <= y) and P(Y > y).
Output<double> tails(Starts start, Numbers weight, Numbers freedom, Numbers location, Numbers scale, Numbers y,
                     int n_jobs) {
    return to_numpy(
        without_gil(
            true, [&] { return student_tails(units_of(start, weight, freedom, location, scale), to_span(y), n_jobs); }),
        {y.size(), 2});
}

Output<double> quantiles(Starts start, Numbers weight, Numbers freedom, Numbers location, Numbers scale, Numbers p,
                         int n_jobs) {
    return to_numpy(
        without_gil(
            true,
            [&] { return student_quantiles(units_of(start, weight, freedom, location, scale), to_span(p), n_jobs); }),
        {p.size(), 1});
}

// (n_points, n_rows or 1) targets.
RowTargets targets_of(const Numbers& y) {
    if (y.ndim() != 2) throw std::invalid_argument("y: (n_points, n_rows)");
    return {to_span(y), y.shape(0), y.shape(1)};
}

class StudentForestHandle {
  public:
    using Ends = Input<std::int32_t>;

    StudentForestHandle(const NodePool& pool, Numbers freedom, Numbers location, Numbers location_rest, Numbers scale,
                        int n_jobs)
        : forest_(pool, {to_span(freedom), to_span(location), to_span(location_rest), to_span(scale)}, n_jobs) {}

    Output<double> quantiles(Ends ends, Numbers levels, int n_jobs) const {
        for (const double p : to_span(levels))
            if (!(p > 0.0 && p < 1.0)) throw std::invalid_argument("levels: between 0 and 1");
        return to_numpy(without_gil(true, [&] { return forest_.quantiles(to_span(ends), to_span(levels), n_jobs); }),
                        {n_rows(ends), levels.size()});
    }
    Output<double> shortest(Ends ends, double coverage, bool is_log, int n_jobs) const {
        if (!(coverage > 0.0 && coverage < 1.0)) throw std::invalid_argument("coverage: between 0 and 1");
        return to_numpy(without_gil(true, [&] { return forest_.shortest(to_span(ends), coverage, is_log, n_jobs); }),
                        {n_rows(ends), 2});
    }
    Output<double> log_densities(Ends ends, Numbers y, int n_jobs) const {
        return of_targets(ends, y, [&](auto e, auto targets) { return forest_.log_densities(e, targets, n_jobs); });
    }
    Output<double> tails(Ends ends, Numbers y, bool is_above, int n_jobs) const {
        return of_targets(ends, y, [&](auto e, auto targets) { return forest_.tails(e, targets, is_above, n_jobs); });
    }
    Output<double> scores(Ends ends, Numbers y, bool is_log, int n_jobs) const {
        return of_targets(ends, y, [&](auto e, auto targets) { return forest_.scores(e, targets, is_log, n_jobs); });
    }

  private:
    std::size_t n_rows(const Ends& ends) const { return ends.size() / forest_.n_trees(); }

    template <class Of>
    Output<double> of_targets(const Ends& ends, const Numbers& y, Of of) const {
        const RowTargets targets = targets_of(y);
        return to_numpy(without_gil(true, [&] { return of(to_span(ends), targets); }),
                        {targets.n_points, n_rows(ends)});
    }

    StudentForest forest_;
};

}  // namespace

void bind_student(nb::module_& module) {
    module.def("student_tails", &tails, nb::kw_only(), "start"_a, "weight"_a, "freedom"_a, "location"_a, "scale"_a,
               "y"_a, "n_jobs"_a);
    module.def("student_quantiles", &quantiles, nb::kw_only(), "start"_a, "weight"_a, "freedom"_a, "location"_a,
               "scale"_a, "p"_a, "n_jobs"_a);
    nb::class_<StudentForestHandle>(module, "StudentForest")
        .def(nb::init<const NodePool&, Numbers, Numbers, Numbers, Numbers, int>(), nb::keep_alive<1, 2>(), "pool"_a,
             nb::kw_only(), "freedom"_a, "location"_a, "location_rest"_a, "scale"_a, "n_jobs"_a)
        .def("quantiles", &StudentForestHandle::quantiles, nb::kw_only(), "ends"_a, "levels"_a, "n_jobs"_a)
        .def("shortest", &StudentForestHandle::shortest, nb::kw_only(), "ends"_a, "coverage"_a, "is_log"_a, "n_jobs"_a)
        .def("log_densities", &StudentForestHandle::log_densities, nb::kw_only(), "ends"_a, "y"_a, "n_jobs"_a)
        .def("tails", &StudentForestHandle::tails, nb::kw_only(), "ends"_a, "y"_a, "is_above"_a, "n_jobs"_a)
        .def("scores", &StudentForestHandle::scores, nb::kw_only(), "ends"_a, "y"_a, "is_log"_a, "n_jobs"_a);
    nb::class_<StudentMixtures>(module, "StudentMixtures")
        .def(
            "__init__",
            [](StudentMixtures* self, Starts start, Numbers weight, Numbers freedom, Numbers location, Numbers scale) {
                new (self) StudentMixtures(units_of(start, weight, freedom, location, scale));
            },
            nb::kw_only(), "start"_a, "weight"_a, "freedom"_a, "location"_a, "scale"_a)
        .def(
            "tails",
            [](const StudentMixtures& self, Starts unit, Numbers y, Input<bool> is_above, int n_jobs) {
                return to_numpy(without_gil(
                    true, [&] { return self.tails(to_span(unit), to_span(y), to_span(is_above), n_jobs); }));
            },
            "unit"_a, "y"_a, "is_above"_a, "n_jobs"_a)
        .def(
            "extra_distances",
            [](const StudentMixtures& self, Numbers y, Numbers origin, int n_jobs) {
                return to_numpy(
                    without_gil(true, [&] { return self.extra_distances(to_span(y), to_span(origin), n_jobs); }));
            },
            "y"_a, "origin"_a, "n_jobs"_a);
}

}  // namespace everytree::bind
