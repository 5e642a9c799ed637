// Leaves of many classes: most nodes have few of them, so each node lists those that its rows have.
#pragma once
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "numerics/special.hpp"
#include "online/leaves.hpp"

namespace everytree::online {

// From this number on, a pass over all classes costs more than a list of those that occur.
inline constexpr int many_classes = 32;

struct ClassWeight {
    std::int32_t number;
    double weight;
};

// The lists of all nodes, one after another.
struct PackedClasses {
    std::vector<std::int64_t> start;  // of each node, and the end of the last one
    std::vector<std::int32_t> number;
    std::vector<double> weight;
};

// Gamma(x + n) / Gamma(x) for one x, looked up if n is a number of rows of weight 1.
class RisingFactorial {
  public:
    RisingFactorial() = default;
    explicit RisingFactorial(double x) : x_(x), known_(256, 0.0) {
        for (std::size_t n = 1; n < known_.size(); ++n) known_[n] = numerics::log_rising(x, static_cast<double>(n));
    }
    double operator()(double n) const {
        if (knows(n)) return known_[static_cast<std::size_t>(n)];
        return n == 0.0 ? 0.0 : numerics::log_rising(x_, n);
    }
    // The product of those of a and b divided by that of a + b: B(x + a, b) / B(x, b), B the beta function.
    double log_ratio(double a, double b) const {
        if (a == 0.0 || b == 0.0) return 0.0;
        if (knows(a) && knows(b) && knows(a + b)) return (*this)(a) + (*this)(b) - (*this)(a + b);
        const double after[] = {x_ + a, b}, before[] = {x_, b};
        return numerics::log_beta(after, 2) - numerics::log_beta(before, 2);
    }

  private:
    bool knows(double n) const {
        return n < static_cast<double>(known_.size()) && static_cast<double>(static_cast<std::size_t>(n)) == n;
    }

    double x_ = 1.0;
    std::vector<double> known_;
};

// theta ~ Dirichlet, with the concentration shared equally by all classes. Quantities that do not depend on the rows
// take no time and memory per class, so that adding a class is cheap.
class ClassLists {
  public:
    ClassLists(int n_classes, double concentration) : concentration_(concentration), of_all_(concentration) {
        use(n_classes);
    }

    void use(int n_classes) {
        n_classes_ = n_classes;
        alpha_ = concentration_ / n_classes;
        of_one_is_due_ = true;
    }
    double concentration() const { return concentration_; }
    int n_classes() const { return n_classes_; }
    void attach(const OnlineArrays& arrays) { lists_.resize(static_cast<std::size_t>(arrays.capacity)); }

    bool supports(const Row& row) const { return (row.y >= 0.0) & (row.y < n_classes_) & (row.y == std::floor(row.y)); }
    int n_statistics() const { return n_classes_; }
    int n_expected() const { return n_classes_; }

    void clear(std::int32_t s) { List().swap(lists_[s]); }
    void copy(std::int32_t from, std::int32_t to) { lists_[to] = lists_[from]; }
    void add(std::int32_t s, const Row& row) {
        List& list = lists_[s];
        const auto number = static_cast<std::int32_t>(row.y);
        const auto place = std::lower_bound(list.begin(), list.end(), number,
                                            [](const ClassWeight& one, std::int32_t c) { return one.number < c; });
        if (place != list.end() && place->number == number)
            place->weight += row.weight;
        else
            list.insert(place, {number, row.weight});
    }
    void scale(std::int32_t s, double factor) {
        for (ClassWeight& each : lists_[s]) each.weight *= factor;
    }

    // Classes without rows in the node do not matter one by one: together they are one class without rows.
    double log_evidence(std::int32_t s) {
        const List& list = lists_[s];
        const double total = total_of(list);
        if (total >= few_rows) return log_evidence_of_many_rows(list);
        const RisingFactorial& of_one = of_one_class();
        double log_ratio = -of_all_(total);
        for (const ClassWeight& each : list) log_ratio += of_one(each.weight);
        return log_ratio;
    }

    // Log ratio of the evidence of two nodes, each by itself, to that of their rows together. Classes that only one of
    // them has cancel.
    struct Parting {
        double log_ratio;
        bool share_classes;  // if not, it does not depend on the number of classes
    };
    Parting part(std::int32_t left, std::int32_t right) {
        const List &one = lists_[left], &other = lists_[right];
        Parting parting{-of_all_.log_ratio(total_of(one), total_of(other)), false};
        for (auto a = one.begin(), b = other.begin(); a != one.end() && b != other.end();) {
            if (a->number == b->number) {
                parting.log_ratio += of_one_class().log_ratio(a->weight, b->weight);
                parting.share_classes = true;
            }
            const bool first = a->number <= b->number, second = b->number <= a->number;
            a += first;
            b += second;
        }
        return parting;
    }

    // The prior's part is the same for all classes, and is added at the end.
    void average(const std::vector<OnlineShare>& shares, double* out) const {
        double of_prior = 0.0;
        for (const OnlineShare& share : shares) {
            const List& list = list_of(share);
            const double each_row = share.weight / (concentration_ + share.fraction * total_of(list));
            of_prior += each_row;
            for (const ClassWeight& each : list) out[each.number] += each_row * (share.fraction * each.weight);
        }
        for (int c = 0; c < n_classes_; ++c) out[c] += of_prior * alpha_;
    }
    void append(const OnlineShare& share, std::vector<double>& out) const {
        const std::size_t first = out.size();
        out.resize(first + static_cast<std::size_t>(n_classes_), 0.0);
        for (const ClassWeight& each : list_of(share)) out[first + each.number] = share.fraction * each.weight;
    }

    PackedClasses packed(std::int64_t n_nodes) const {
        PackedClasses all;
        all.start.push_back(0);
        for (std::int64_t s = 0; s < n_nodes; ++s) {
            for (const ClassWeight& each : lists_[s]) {
                all.number.push_back(each.number);
                all.weight.push_back(each.weight);
            }
            all.start.push_back(static_cast<std::int64_t>(all.number.size()));
        }
        return all;
    }
    void unpack(const std::int64_t* start, std::int64_t n_nodes, const std::int32_t* number, const double* weight,
                std::int64_t n_entries) {
        if (n_nodes > static_cast<std::int64_t>(lists_.size()) || start[0] != 0 || start[n_nodes] != n_entries)
            throw std::invalid_argument("lists of classes must be those of the nodes, and nothing else");
        for (std::int64_t s = 0; s < n_nodes; ++s) {
            if (start[s] > start[s + 1] || start[s + 1] > n_entries)
                throw std::invalid_argument("lists of classes must follow one another");
            List list;
            for (std::int64_t i = start[s]; i < start[s + 1]; ++i) {
                if (number[i] < 0 || number[i] >= n_classes_ || (i > start[s] && number[i] <= number[i - 1]))
                    throw std::invalid_argument("classes of a node must be in ascending order, and known");
                list.push_back({number[i], weight[i]});
            }
            lists_[s] = std::move(list);
        }
    }

  private:
    using List = std::vector<ClassWeight>;

    // Up to this number the terms of a sum are so small that cancellation is below 1e-11.
    static constexpr double few_rows = 4096.0;

    const List& list_of(const OnlineShare& share) const { return share.node < 0 ? nothing_ : lists_[share.node]; }
    static double total_of(const List& list) {
        double total = 0.0;
        for (const ClassWeight& each : list) total += each.weight;
        return total;
    }

    EVERYTREE_NOINLINE double log_evidence_of_many_rows(const List& list) {
        prior_.assign(list.size(), alpha_);
        weights_.clear();
        for (const ClassWeight& each : list) weights_.push_back(each.weight);
        if (list.size() < static_cast<std::size_t>(n_classes_)) {
            prior_.push_back(alpha_ * static_cast<double>(n_classes_ - static_cast<std::int64_t>(list.size())));
            weights_.push_back(0.0);
        }
        const auto n = static_cast<int>(prior_.size());
        scratch_.resize(prior_.size());
        return numerics::log_beta_ratio(prior_.data(), weights_.data(), n, numerics::log_beta(prior_.data(), n),
                                        scratch_.data());
    }
    const RisingFactorial& of_one_class() {
        if (of_one_is_due_) of_one_ = RisingFactorial(alpha_);
        of_one_is_due_ = false;
        return of_one_;
    }

    int n_classes_ = 0;
    double concentration_, alpha_ = 0.0;
    RisingFactorial of_all_, of_one_;
    bool of_one_is_due_ = true;
    std::vector<List> lists_;
    List nothing_;
    std::vector<double> prior_, weights_, scratch_;
};

}  // namespace everytree::online
