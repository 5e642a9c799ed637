// Families by their names in Python.
#pragma once
#include <stdexcept>
#include <string>

#include "core/any_family.hpp"
#include "core/families.hpp"
#include "core/histogram.hpp"
#include "core/hurdle.hpp"
#include "core/linear.hpp"
#include "core/shapes.hpp"
#include "core/survival.hpp"

namespace everytree {

inline AnyFamily any_family(const std::string& name, int size);

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
    if (name.starts_with("gamma")) return make(AnyFamily(Gamma(size, name.substr(5))));  // with their shapes
    if (name.starts_with("weibull")) return make(AnyFamily(Weibull(size, name.substr(7))));
    if (name.starts_with("negative_binomial")) return make(AnyFamily(NegativeBinomial(size, name.substr(17))));
    if (name.starts_with("counts_or_zero ")) return make(AnyFamily(Hurdle(any_family(name.substr(15), size), true)));
    if (name.starts_with("or_zero ")) return make(AnyFamily(Hurdle(any_family(name.substr(8), size), false)));
    throw std::invalid_argument("no kernel for a family named " + name);
}

AnyFamily any_family(const std::string& name, int size) {
    return with_family(name, size, [](auto family) { return AnyFamily(std::move(family)); });
}

}  // namespace everytree
