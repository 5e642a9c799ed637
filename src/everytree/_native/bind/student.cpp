// Mixtures of Student's t.
#include "bind/common.hpp"
#include "bind/modules.hpp"
#include "core/student_mixtures.hpp"

namespace everytree {
namespace {

using Numbers = Input<double>;
using Starts = Input<std::int64_t>;

StudentUnits units_of(const Starts& start, const Numbers& weight, const Numbers& freedom, const Numbers& location,
                      const Numbers& scale) {
    return {to_span(start), to_span(weight), to_span(freedom), to_span(location), to_span(scale), {}};
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

}  // namespace

void bind_student(nb::module_& module) {
    module.def("student_tails", &tails, nb::kw_only(), "start"_a, "weight"_a, "freedom"_a, "location"_a, "scale"_a,
               "y"_a, "n_jobs"_a);
    module.def("student_quantiles", &quantiles, nb::kw_only(), "start"_a, "weight"_a, "freedom"_a, "location"_a,
               "scale"_a, "p"_a, "n_jobs"_a);
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

}  // namespace everytree
