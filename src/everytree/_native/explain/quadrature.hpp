// Gauss-Legendre nodes and weights on (0, 1): n of them integrate every polynomial of degree 2 n - 1 exactly.
#pragma once
#include <cmath>
#include <cstddef>
#include <vector>

namespace everytree::explain {

struct Quadrature {
    std::vector<double> node, weight;
};

// The value of the Legendre polynomial of degree n, and of its derivative, by the recurrence of three terms.
struct LegendreValue {
    double value, slope;
};
inline LegendreValue legendre(int n, double x) {
    double before = 1.0, value = x;
    for (int k = 2; k <= n; ++k) {
        const double next = ((2.0 * k - 1.0) * x * value - (k - 1.0) * before) / k;
        before = value;
        value = next;
    }
    return {value, n * (before - x * value) / (1.0 - x * x)};
}

// Newton's method from a start that is close enough for every n.
inline Quadrature gauss_legendre(int n) {
    constexpr double pi = 3.14159265358979323846;
    Quadrature found;
    for (int i = n; i >= 1; --i) {
        double x = std::cos(pi * (i - 0.25) / (n + 0.5));
        for (int step = 0; step < 20; ++step) {
            const LegendreValue at = legendre(n, x);
            const double change = at.value / at.slope;
            x -= change;
            if (std::abs(change) < 1e-16) break;
        }
        const double slope = legendre(n, x).slope;
        found.node.push_back(0.5 * (1.0 + x));
        found.weight.push_back(1.0 / ((1.0 - x * x) * slope * slope));
    }
    return found;
}

}  // namespace everytree::explain
