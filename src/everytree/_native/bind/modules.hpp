// The parts of the module, one translation unit each.
#pragma once
#include <nanobind/nanobind.h>

namespace everytree::bind {

void bind_guard(nanobind::module_& module);
void bind_tree(nanobind::module_& module);
void bind_families(nanobind::module_& module);
void bind_posterior(nanobind::module_& module);
void bind_growing(nanobind::module_& module);
void bind_growers(nanobind::module_& module);
void bind_boost(nanobind::module_& module);
void bind_forest(nanobind::module_& module);
void bind_held_out(nanobind::module_& module);
void bind_student(nanobind::module_& module);
void bind_survival(nanobind::module_& module);
void bind_exact(nanobind::module_& module);
void bind_exact_tables(nanobind::module_& module);
void bind_explain(nanobind::module_& module);
void bind_sampling(nanobind::module_& module);
void bind_online(nanobind::module_& module);
void bind_row_dicts(nanobind::module_& module);
void bind_columns(nanobind::module_& module);

}  // namespace everytree::bind
