// Families by their names in Python.
#pragma once
#include <stdexcept>
#include <string>

#include "core/families.hpp"
#include "core/histogram.hpp"
#include "core/linear.hpp"
#include "core/survival.hpp"

namespace everytree {

// Calls `make(family)` with the family of that name.
template <class Make>
auto with_family(const std::string& name, int size, Make make) {
    if (name == "categorical") return make(Categorical(size));
    if (name == "poisson") return make(Poisson());
    if (name == "exponential") return make(Exponential());
    if (name == "geometric") return make(Geometric());
    if (name == "normal") return make(Normal());
    if (name == "lognormal") return make(LogNormal());
    if (name.starts_with("histogram")) return make(Histogram(size, name.substr(9)));  // with its cells
    if (name == "linear") return make(LinearRegression(size));
    if (name == "survival") return make(Survival(size));
    throw std::invalid_argument("no kernel for a family named " + name);
}

}  // namespace everytree
