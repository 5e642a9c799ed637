// Sums of what several trees say of the same rows.
#pragma once
#include <cstdint>
#include <span>

#include "numerics/log_sum.hpp"

namespace everytree::held_out {

// answers: (n priors, rows.size(), n_values) of one tree, added to pooled: (n priors, n_rows, n_values).
inline void add_answers(const double* answers, std::span<const std::int64_t> rows, std::size_t n_priors,
                        std::size_t n_rows, std::size_t n_values, bool are_logs, double* pooled) {
    for (std::size_t prior = 0; prior < n_priors; ++prior, pooled += n_rows * n_values)
        for (const std::int64_t row : rows) {
            double* const sum = pooled + static_cast<std::size_t>(row) * n_values;
            for (std::size_t v = 0; v < n_values; ++v, ++answers)
                sum[v] = are_logs ? numerics::log_sum(sum[v], *answers) : sum[v] + *answers;
        }
}

}  // namespace everytree::held_out
