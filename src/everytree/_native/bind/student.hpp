// Mixtures of Student's t over arrays: unit u owns entries start[u] .. start[u + 1].
#pragma once
#include <map>
#include <unordered_map>

#include "bind/common.hpp"
#include "core/parallel.hpp"
#include "core/student.hpp"

namespace everytree {

struct StudentUnits {
    Input<std::int64_t> start;
    Input<double> weight, freedom, location, scale;

    // Numbers that a distribution has, and some weight in every unit.
    void check_unit(std::int64_t begin, std::int64_t end) const {
        double total = 0.0;
        for (std::int64_t i = begin; i < end; ++i) {
            const double w = weight.data()[i], nu = freedom.data()[i], at = location.data()[i], s = scale.data()[i];
            if (!(w >= 0.0 && w <= 2.0 && nu > 0.0 && std::isfinite(nu) && std::isfinite(at) && s > 0.0 &&
                  std::isfinite(s)))
                throw std::invalid_argument("a unit with a weight below 0, or a scale or freedom that is not positive");
            total += w;
        }
        if (!(total > 0.0)) throw std::invalid_argument("a unit without weight");
    }

    void check() const {
        const auto n = static_cast<std::int64_t>(weight.size());
        if (start.size() == 0 || start.data()[0] != 0 || start.data()[start.size() - 1] != n ||
            freedom.size() != weight.size() || location.size() != weight.size() || scale.size() != weight.size())
            throw std::invalid_argument("arrays of the wrong size");
        for (std::size_t u = 0; u + 1 < start.size(); ++u)
            if (start.data()[u + 1] <= start.data()[u]) throw std::invalid_argument("a unit without entries");
        for (std::size_t u = 0; u + 1 < start.size(); ++u) check_unit(start.data()[u], start.data()[u + 1]);
    }

    // A table for each entry, shared by those of the same degrees of freedom; none where there are too few units to
    // make them worth while.
    std::vector<const StudentTable*> tables(std::size_t n_units) const {
        if (n_units < 16) return {};
        std::vector<const StudentTable*> of_entry(freedom.size(), nullptr);
        for (std::size_t i = 0; i < freedom.size(); ++i) {
            if (freedom.data()[i] < StudentTable::least_freedom) continue;
            auto [at, is_new] = known.try_emplace(freedom.data()[i], nullptr);
            if (is_new) at->second = std::make_unique<StudentTable>(freedom.data()[i]);
            of_entry[i] = at->second.get();
        }
        return of_entry;
    }
    mutable std::map<double, std::unique_ptr<StudentTable>> known{};

    // of(mixture, unit, worker's own row of the output)
    template <class Of>
    nb::object each(std::size_t n_out, int n_jobs, Of of) const {
        check();
        const std::size_t n_units = start.size() - 1;
        std::vector<double> out(n_units * n_out);
        without_gil(true, [&] {
            const std::vector<const StudentTable*> table_of = tables(n_units);
            constexpr std::size_t together = 16;
            const auto work = [&](std::int64_t chunk, int) {
                StudentMixture mixture;
                const std::size_t first = static_cast<std::size_t>(chunk) * together;
                for (std::size_t u = first; u < std::min(first + together, n_units); ++u) {
                    mixture.clear();
                    for (std::int64_t i = start.data()[u]; i < start.data()[u + 1]; ++i)
                        mixture.add(weight.data()[i], freedom.data()[i], location.data()[i], scale.data()[i],
                                    table_of.empty() ? nullptr : table_of[i]);
                    of(mixture, u, out.data() + u * n_out);
                }
            };
            const auto n_chunks = static_cast<std::int64_t>((n_units + together - 1) / together);
            in_chunks(n_chunks, n_jobs, work);
        });
        return nb::cast(to_numpy(std::move(out), {n_units, n_out}));
    }
};

// (n_units, 2): P(Y <= y) and P(Y > y).
inline nb::object student_tails(Input<std::int64_t> start, Input<double> weight, Input<double> freedom,
                                Input<double> location, Input<double> scale, Input<double> y, int n_jobs) {
    if (y.size() + 1 != start.size()) throw std::invalid_argument("one y a unit");
    return StudentUnits{start, weight, freedom, location, scale, {}}.each(
        2, n_jobs, [&](const StudentMixture& mixture, std::size_t u, double* out) {
            const Tails tails = mixture.at(y.data()[u]);
            out[0] = tails.below;
            out[1] = tails.above;
        });
}

inline nb::object student_quantiles(Input<std::int64_t> start, Input<double> weight, Input<double> freedom,
                                    Input<double> location, Input<double> scale, Input<double> p, int n_jobs) {
    if (p.size() + 1 != start.size()) throw std::invalid_argument("one p a unit");
    return StudentUnits{start, weight, freedom, location, scale, {}}.each(
        1, n_jobs,
        [&](const StudentMixture& mixture, std::size_t u, double* out) { *out = mixture.quantile(p.data()[u]); });
}

// Mixtures that are asked about many points each.
class StudentMixtures {
  public:
    StudentMixtures(Input<std::int64_t> start, Input<double> weight, Input<double> freedom, Input<double> location,
                    Input<double> scale) {
        StudentUnits{start, weight, freedom, location, scale, {}}.check();
        start_.assign(start.data(), start.data() + start.size());
        const std::vector<const Shape*> shapes = shapes_of(freedom);
        parts_.reserve(weight.size());
        for (std::size_t i = 0; i < weight.size(); ++i)
            parts_.push_back({weight.data()[i], Student(shapes[i]->standard, location.data()[i], scale.data()[i]),
                              shapes[i]->table.get()});
        // Neighbours share a table, so that it is still in the cache.
        for (std::size_t u = 0; u + 1 < start_.size(); ++u)
            std::stable_sort(parts_.begin() + start_[u], parts_.begin() + start_[u + 1],
                             [](const Part& a, const Part& b) { return a.student.freedom() < b.student.freedom(); });
    }
    StudentMixtures(const StudentMixtures&) = delete;  // parts point to tables
    StudentMixtures& operator=(const StudentMixtures&) = delete;

    // P(Y > y) of a unit where is_above, else P(Y <= y), point by point; fastest where points of a unit are neighbours.
    nb::object tails(Input<std::int64_t> unit, Input<double> y, Input<bool> is_above, int n_jobs) const {
        const std::size_t n = y.size();
        if (unit.size() != n || is_above.size() != n) throw std::invalid_argument("arrays of the wrong size");
        for (std::size_t i = 0; i < n; ++i) check_unit(unit.data()[i]);
        std::vector<double> out(n, 0.0);
        without_gil(true, [&] {
            in_chunks(n_chunks(n), n_jobs, [&](std::int64_t chunk, int) {
                const std::size_t end = std::min((chunk + 1) * together, n);
                for (std::size_t first = chunk * together, last; first < end; first = last) {
                    for (last = first + 1; last < end && unit.data()[last] == unit.data()[first];) ++last;
                    for (std::int64_t i = start_[unit.data()[first]]; i < start_[unit.data()[first] + 1]; ++i)
                        parts_[i].add_tails(y.data() + first, is_above.data() + first, last - first, &out[first]);
                }
            });
        });
        return nb::cast(to_numpy(std::move(out)));
    }

    // (n_units,): E|Y - y| - E|Y - origin|; more than one degree of freedom wherever there is weight.
    nb::object extra_distances(Input<double> y, Input<double> origin, int n_jobs) const {
        const std::size_t n = start_.size() - 1;
        if (y.size() != n || origin.size() != n) throw std::invalid_argument("arrays of the wrong size");
        std::vector<double> out(n, 0.0);
        without_gil(true, [&] {
            in_chunks(n_chunks(n), n_jobs, [&](std::int64_t chunk, int) {
                for (std::size_t u = chunk * together; u < std::min((chunk + 1) * together, n); ++u)
                    for (std::int64_t i = start_[u]; i < start_[u + 1]; ++i)
                        if (parts_[i].weight > 0.0) out[u] += parts_[i].extra(y.data()[u], origin.data()[u]);
            });
        });
        return nb::cast(to_numpy(std::move(out)));
    }

  private:
    static constexpr std::size_t together = 4096;
    static std::int64_t n_chunks(std::size_t n) { return static_cast<std::int64_t>((n + together - 1) / together); }

    // One number of degrees of freedom, with a table where so many entries share it that they look it up often.
    struct Shape {
        explicit Shape(double freedom) : standard(freedom, 0.0, 1.0) {}
        Student standard;
        std::unique_ptr<StudentTable> table;
        int n_entries = 0;
    };

    struct Part {
        double weight;
        Student student;
        const StudentTable* table;

        // P(T > |z|).
        double tail(double y) const {
            const double size = std::fabs(student.standardised(y));
            if (table != nullptr && size < table->reach()) return table->tail(size);
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

    std::vector<const Shape*> shapes_of(const Input<double>& freedom) {
        constexpr int worth_a_table = 8;
        std::vector<const Shape*> of_entry(freedom.size());
        for (std::size_t i = 0; i < freedom.size(); ++i) {
            Shape& shape = shapes_.try_emplace(freedom.data()[i], freedom.data()[i]).first->second;
            if (++shape.n_entries == worth_a_table && freedom.data()[i] >= StudentTable::least_freedom)
                shape.table = std::make_unique<StudentTable>(freedom.data()[i]);
            of_entry[i] = &shape;
        }
        return of_entry;
    }

    void check_unit(std::int64_t unit) const {
        if (unit < 0 || unit + 1 >= static_cast<std::int64_t>(start_.size()))
            throw std::invalid_argument("a point of a unit that is not there");
    }

    std::vector<std::int64_t> start_;
    std::vector<Part> parts_;
    std::unordered_map<double, Shape> shapes_;
};

}  // namespace everytree
