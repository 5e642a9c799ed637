// Many mixtures of Student's t at once, one per unit: the entries of a unit are contiguous, from its `start` on.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "core/parallel.hpp"
#include "distributions/student_mixture.hpp"

namespace everytree::distributions {

// The shapes of many entries, each with a table if at least `worth_a_table` entries share it.
class Shapes {
  public:
    static constexpr std::int64_t no_table = std::numeric_limits<std::int64_t>::max();

    Shapes(std::span<const double> freedom, std::int64_t worth_a_table) : of_entry(freedom.size()) {
        for (std::size_t i = 0; i < freedom.size(); ++i) {
            Counted& counted = known_.try_emplace(freedom[i], freedom[i]).first->second;
            if (++counted.n_entries == worth_a_table) counted.shape.tabulate();
            of_entry[i] = &counted.shape;
        }
    }
    Shapes(const Shapes&) = delete;  // entries point to shapes
    Shapes& operator=(const Shapes&) = delete;

    std::vector<const TabulatedShape*> of_entry;

  private:
    struct Counted {
        explicit Counted(double freedom) : shape(freedom) {}
        TabulatedShape shape;
        std::int64_t n_entries = 0;
    };
    std::unordered_map<double, Counted> known_;
};

struct StudentUnits {
    std::span<const std::int64_t> start;
    std::span<const double> weight, freedom, location, scale;

    // Checks the parameters of each distribution, and that every unit has some weight.
    void check_unit(std::int64_t begin, std::int64_t end) const {
        double total = 0.0;
        for (std::int64_t i = begin; i < end; ++i) {
            const double w = weight[i], nu = freedom[i], at = location[i], s = scale[i];
            if (!(w >= 0.0 && w <= 2.0 && nu > 0.0 && std::isfinite(at) && s > 0.0 && std::isfinite(s)))
                throw std::invalid_argument("a unit with a weight below 0, or a scale or freedom that is not positive");
            total += w;
        }
        if (!(total > 0.0)) throw std::invalid_argument("a unit without weight");
    }

    void check() const {
        const auto n = static_cast<std::int64_t>(weight.size());
        if (start.size() == 0 || start[0] != 0 || start[start.size() - 1] != n || freedom.size() != weight.size() ||
            location.size() != weight.size() || scale.size() != weight.size())
            throw std::invalid_argument("arrays of the wrong size");
        for (std::size_t u = 0; u + 1 < start.size(); ++u)
            if (start[u + 1] <= start[u]) throw std::invalid_argument("a unit without entries");
        for (std::size_t u = 0; u + 1 < start.size(); ++u) check_unit(start[u], start[u + 1]);
    }

    // of(mixture, unit, worker's own row of the output)
    template <class Of>
    std::vector<double> each(std::size_t n_out, int n_jobs, Of of) const {
        check();
        const std::size_t n_units = start.size() - 1;
        std::vector<double> out(n_units * n_out);
        const Shapes shapes(freedom, n_units < 16 ? Shapes::no_table : 1);
        constexpr std::size_t together = 16;
        const auto work = [&](std::int64_t chunk, int) {
            StudentMixture mixture;
            const std::size_t first = static_cast<std::size_t>(chunk) * together;
            for (std::size_t u = first; u < std::min(first + together, n_units); ++u) {
                mixture.clear();
                for (std::int64_t i = start[u]; i < start[u + 1]; ++i)
                    mixture.add(weight[i], *shapes.of_entry[i], location[i], 1.0 / scale[i]);
                mixture.close();
                of(mixture, u, out.data() + u * n_out);
            }
        };
        in_chunks(static_cast<std::int64_t>((n_units + together - 1) / together), n_jobs, work);
        return out;
    }
};

// (n_units, 2): P(Y <= y) and P(Y > y).
inline std::vector<double> student_tails(const StudentUnits& units, std::span<const double> y, int n_jobs) {
    if (y.size() + 1 != units.start.size()) throw std::invalid_argument("one y a unit");
    return units.each(2, n_jobs, [&](const StudentMixture& mixture, std::size_t u, double* out) {
        const Tails tails = mixture.at(y[u]);
        out[0] = tails.below;
        out[1] = tails.above;
    });
}

// (n_units, 1): quantiles.
inline std::vector<double> student_quantiles(const StudentUnits& units, std::span<const double> p, int n_jobs) {
    if (p.size() + 1 != units.start.size()) throw std::invalid_argument("one p a unit");
    return units.each(1, n_jobs, [&](const StudentMixture& mixture, std::size_t u, double* out) {
        *out = mixture.quantile(p[u], true);
    });
}

// Mixtures that are evaluated at many points each.
class StudentMixtures {
  public:
    explicit StudentMixtures(const StudentUnits& units)
        : start_(checked_start(units)), shapes_(units.freedom, worth_a_table) {
        parts_.reserve(units.weight.size());
        for (std::size_t i = 0; i < units.weight.size(); ++i) {
            const TabulatedShape& shape = *shapes_.of_entry[i];
            parts_.push_back({units.weight[i], Student(shape.shape, units.location[i], units.scale[i]), shape.table()});
        }
        // Entries next to each other share a table, so that it stays in the cache.
        for (std::size_t u = 0; u + 1 < start_.size(); ++u)
            std::stable_sort(parts_.begin() + start_[u], parts_.begin() + start_[u + 1],
                             [](const Part& a, const Part& b) { return a.student.freedom() < b.student.freedom(); });
    }
    StudentMixtures(const StudentMixtures&) = delete;  // parts point to tables
    StudentMixtures& operator=(const StudentMixtures&) = delete;

    // P(Y > y) of a unit if is_above, else P(Y <= y), point by point; fastest if points of a unit are contiguous.
    std::vector<double> tails(std::span<const std::int64_t> unit, std::span<const double> y,
                              std::span<const bool> is_above, int n_jobs) const {
        const std::size_t n = y.size();
        if (unit.size() != n || is_above.size() != n) throw std::invalid_argument("arrays of the wrong size");
        for (const std::int64_t each : unit) check_unit(each);
        std::vector<double> out(n, 0.0);
        in_chunks(n_chunks(n), n_jobs, [&](std::int64_t chunk, int) {
            const std::size_t end = std::min((chunk + 1) * together, n);
            for (std::size_t first = chunk * together, last; first < end; first = last) {
                for (last = first + 1; last < end && unit[last] == unit[first];) ++last;
                for (std::int64_t i = start_[unit[first]]; i < start_[unit[first] + 1]; ++i)
                    parts_[i].add_tails(y.data() + first, is_above.data() + first, last - first, &out[first]);
            }
        });
        return out;
    }

    // (n_units,): E|Y - y| - E|Y - origin|; all components with weight have more than one degree of freedom.
    std::vector<double> extra_distances(std::span<const double> y, std::span<const double> origin, int n_jobs) const {
        const std::size_t n = start_.size() - 1;
        if (y.size() != n || origin.size() != n) throw std::invalid_argument("arrays of the wrong size");
        std::vector<double> out(n, 0.0);
        in_chunks(n_chunks(n), n_jobs, [&](std::int64_t chunk, int) {
            for (std::size_t u = chunk * together; u < std::min((chunk + 1) * together, n); ++u)
                for (std::int64_t i = start_[u]; i < start_[u + 1]; ++i)
                    if (parts_[i].weight > 0.0) out[u] += parts_[i].extra(y[u], origin[u]);
        });
        return out;
    }

  private:
    static constexpr std::size_t together = 4096;
    static constexpr std::int64_t worth_a_table = 8;  // entries that share it
    static std::vector<std::int64_t> checked_start(const StudentUnits& units) {
        units.check();
        return {units.start.begin(), units.start.end()};
    }
    static std::int64_t n_chunks(std::size_t n) { return static_cast<std::int64_t>((n + together - 1) / together); }

    struct Part {
        double weight;
        Student student;
        const StudentTable* table;

        // P(T > |z|).
        double tail(double y) const {
            const double size = std::fabs(student.standardised(y));
            if (table != nullptr && size < StudentTable::reach) return table->tail(size);
            const Tails tails = student.at(y);
            return std::min(tails.below, tails.above);
        }
        double extra(double y, double origin) const {
            return weight * student.extra_distance(y, tail(y), origin, tail(origin));
        }
        void add_tails(const double* y, const bool* is_above, std::size_t n, double* out) const {
            if (!(weight > 0.0)) return;
            for (std::size_t k = 0; k < n; ++k) {
                const double small = tail(y[k]);
                out[k] += weight * ((y[k] > student.location()) == is_above[k] ? small : 1.0 - small);
            }
        }
    };

    void check_unit(std::int64_t unit) const {
        if (unit < 0 || unit + 1 >= static_cast<std::int64_t>(start_.size()))
            throw std::invalid_argument("a point of a unit that is not there");
    }

    std::vector<std::int64_t> start_;
    Shapes shapes_;
    std::vector<Part> parts_;
};

}  // namespace everytree::distributions
