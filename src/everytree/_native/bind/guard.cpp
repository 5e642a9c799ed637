// Locks for readers and writers.
#include "bind/guard.hpp"

#include "bind/modules.hpp"

namespace everytree::bind {

void bind_guard(nb::module_& module) {
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
}

}  // namespace everytree::bind
