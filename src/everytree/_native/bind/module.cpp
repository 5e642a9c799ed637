// The module. No mathematics in this folder: arrays in, arrays out.
#include "bind/modules.hpp"

NB_MODULE(_kernels, module) {
    using namespace everytree::bind;
    module.doc() = "Kernels of everytree: flat arrays in, flat arrays out.";
    // A thread that still holds a model when the interpreter ends is no fault of the user.
    nanobind::set_leak_warnings(false);
    bind_guard(module);
    bind_tree(module);
    bind_families(module);
    bind_posterior(module);
    bind_growing(module);
    bind_growers(module);
    bind_boost(module);
    bind_forest(module);
    bind_held_out(module);
    bind_student(module);
    bind_survival(module);
    bind_exact(module);
    bind_exact_tables(module);
    bind_explain(module);
    bind_sampling(module);
    bind_online(module);
    bind_row_dicts(module);
    bind_columns(module);
}
