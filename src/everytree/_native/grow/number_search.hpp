// The split of a node's rows that count once each and whose targets are numbers, by the squared error, or two classes,
// by the Gini impurity: that is twice the squared error of 0 and 1.
//
// In every node the targets become whole numbers q: their distances from the node's mean, in 2^-22 of the largest one
// or finer than that where sums have room. Whole numbers are summed without rounding in any order, and a sum fits
// beside a count in one cell. Of n rows with the sum T, k of which with the sum S go left, a split lowers the squared
// error by
//   (n S - k T)^2 / (n k (n - k)),
// in squared units of q. The factor 1 / n is the same for all splits of a node and left out.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "grow/code_rows.hpp"
#include "grow/criteria.hpp"
#include "grow/random.hpp"
#include "grow/rule.hpp"
#include "numerics/compiler.hpp"
#include "numerics/vectors.hpp"

namespace everytree::grow {

// Numbers of rows that count once each.
class PlainNumbers {
  public:
    static constexpr bool are_whole = false;
    static constexpr double value_of_error = 1.0;
    struct Row {
        double y;
    };
    explicit PlainNumbers(const double* y) : y_(y) {}
    Row row(std::int64_t i) const { return {y_[i]}; }

  private:
    const double* y_;
};

// Two classes of rows that count once each.
class TwoClasses {
  public:
    static constexpr bool are_whole = true;
    static constexpr double value_of_error = 2.0;
    struct Row {
        std::uint32_t y;
    };
    explicit TwoClasses(const std::int64_t* labels) : labels_(labels) {}
    Row row(std::int64_t i) const { return {static_cast<std::uint32_t>(labels_[i])}; }

  private:
    const std::int64_t* labels_;
};

// Sums of whole numbers beside counts of them.
struct Packed {
    static constexpr int count_bits = 24;
    static constexpr std::int64_t most_rows = std::int64_t{1} << count_bits;
    std::int64_t bits = 0;

    static Packed one(std::int64_t q) { return {q * most_rows + 1}; }
    std::int64_t count() const { return bits & (most_rows - 1); }
    std::int64_t sum() const { return bits >> count_bits; }
    void add(Packed other) { bits += other.bits; }
    Packed with(Packed other) const { return {bits + other.bits}; }
};

template <class Code, class Targets>
class NumberSearch {
  public:
    using Table = CodeRows<Code>;
    using Rows = std::span<const SampledRow<Targets>>;

    NumberSearch(const Table& table, const Targets&, const GrowRule& rule)
        : table_(table),
          rule_(rule),
          used_(static_cast<std::size_t>(table.n_columns())),
          order_(table.n_columns()),
          cells_(together * (static_cast<std::size_t>(table.most_codes()) + 1)),
          seen_(static_cast<std::size_t>(table.most_codes()) + 2),
          value_(seen_.size()),
          bits_(seen_.size() / 64 + 1),
          range_(static_cast<std::size_t>(table.width()) + Table::many),
          threshold_(range_.size()),
          left_(range_.size()) {
        std::iota(used_.begin(), used_.end(), 0);
    }

    void use_columns(std::vector<int> columns) {
        used_ = std::move(columns);
        order_ = RandomOrder(static_cast<int>(used_.size()));
    }

    // Takes the rows of a node. Returns whether their targets differ.
    bool start(Rows rows) {
        n_ = static_cast<std::int64_t>(rows.size());
        if (q_.size() < rows.size()) q_.resize(rows.size());
        if (!take_targets(rows)) return false;
        prepare_weights();
        ceiling_ = n_ <= tiny ? best_of_any_split() : std::numeric_limits<double>::infinity();
        return true;
    }

    // The best split of some columns drawn at random; none where all columns are constant or sides would be too small.
    Split find(Rows rows, NodeRandom& random) {
        best_ = {};
        best_.score = -1.0;  // every split is worth more
        if (rule_.splitter == Splitter::best)
            look_at_all(rows, random);
        else if (n_ <= tiny)
            draw_one_by_one(rows, random);
        else
            draw_together(rows, random);
        order_.start_again();
        return best_;
    }

    // What a split of the node that was searched last wins over none.
    double gain(const Split& split) const {
        return Targets::value_of_error * split.score * unit_ * unit_ / static_cast<double>(n_);
    }

  private:
    static constexpr int most_bits = 22, room = 62 - Packed::count_bits;
    static constexpr std::int64_t tiny = 5, small = 16, few_rows = 192;  // rows of a node
    static constexpr std::size_t together = 5;                           // columns whose cells are filled in one pass
    static constexpr std::size_t ahead = 16;                             // rows whose codes are asked for
    static constexpr std::size_t rows_a_turn = 128;  // whose sums fit into 32 bits, and counts into 8

    // ---- targets as whole numbers ----------------------------------------------------------------------------------

    // Returns whether they differ.
    bool take_targets(Rows rows) {
        if constexpr (Targets::are_whole) {
            total_ = 0;
            for (std::size_t i = 0; i < rows.size(); ++i) total_ += q_[i] = static_cast<std::int32_t>(rows[i].target.y);
            return total_ != 0 && total_ != n_;
        } else {
            return round_targets(rows);
        }
    }
    bool round_targets(Rows rows) {
        double least = rows.front().target.y, most = least, sum = 0.0;
        for (const auto& each : rows) {
            least = std::min(least, each.target.y);
            most = std::max(most, each.target.y);
            sum += each.target.y;
        }
        if (least == most) return false;
        const double mean = sum / static_cast<double>(n_);
        const int bits = std::min(most_bits, room - static_cast<int>(std::bit_width(static_cast<std::uint64_t>(n_))));
        int exponent = 0;
        std::frexp(std::max(most - mean, mean - least), &exponent);
        unit_ = std::ldexp(1.0, std::clamp(exponent - bits, -1000, 1000));
        const double per_unit = 1.0 / unit_;
        total_ = 0;
        for (std::size_t i = 0; i < rows.size(); ++i)
            total_ += q_[i] = static_cast<std::int32_t>(std::lrint((rows[i].target.y - mean) * per_unit));
        return true;
    }

    // ---- what a split is worth ----------------------------------------------------------------------------------

    static double reciprocal(std::int64_t n) { return 1.0 / static_cast<double>(n); }

    // weights_[k] = 1 / (k (n - k)), the same to the last bit for both sides.
    void prepare_weights() {
        static const std::vector<double> known = [] {
            std::vector<double> values(n_weights + 1, 0.0);
            for (std::size_t k = 1; k < values.size(); ++k) values[k] = reciprocal(static_cast<std::int64_t>(k));
            return values;
        }();
        if (n_ > n_weights) return;
        for (std::int64_t k = 1; k < n_; ++k) weights_[at(k)] = known[at(k)] * known[at(n_ - k)];
    }
    template <bool by_table>
    double worth(std::int64_t k, std::int64_t sum) const {
        const auto difference = static_cast<double>(n_ * sum - k * total_);
        const double weight = by_table ? weights_[at(k)] : reciprocal(k) * reciprocal(n_ - k);
        return difference * difference * weight;
    }

    // No split of so few rows is worth more than one between two neighbours in the order of the targets.
    double best_of_any_split() const {
        std::array<std::int32_t, tiny> sorted{};
        for (std::int64_t i = 0; i < n_; ++i) {
            std::int64_t place = i;
            for (; place > 0 && sorted[at(place - 1)] > q_[at(i)]; --place) sorted[at(place)] = sorted[at(place - 1)];
            sorted[at(place)] = q_[at(i)];
        }
        double most = 0.0;
        std::int64_t sum = 0;
        for (std::int64_t k = 1; k < n_; ++k) {
            sum += sorted[at(k - 1)];
            most = std::max(most, worth<true>(k, sum));
        }
        return most;
    }
    bool is_best_of_any() const { return best_.is_found() && best_.score >= ceiling_; }

    // Where no row of the node is missing, missing values will go where most rows go.
    void judge(Split split, Packed left, bool some_missing) {
        const std::int64_t n_left = left.count();
        if (!allows(n_left)) return;
        split.score = n_ <= n_weights ? worth<true>(n_left, left.sum()) : worth<false>(n_left, left.sum());
        if (!(split.score > best_.score)) return;
        if (!some_missing) split.missing_left = n_left > n_ - n_left;
        best_ = split;
    }

    // ---- every threshold between two codes that some rows have --------------------------------------------------

    void look_at_all(Rows rows, NodeRandom& random) {
        std::array<int, together> features{};
        bool any_varies = false;
        for (int n_looked_at = 0; !order_.is_over() && (n_looked_at < rule_.max_features || !any_varies);) {
            std::size_t n = 0;
            const std::size_t most = n_ > small ? together : 1;
            while (n < most && !order_.is_over() && (n == 0 || n_looked_at < rule_.max_features)) {
                features[n++] = next_column(random);
                ++n_looked_at;
            }
            if (n_ <= tiny) {
                any_varies |= look_at_tiny(features[0], rows);
                if (is_best_of_any()) return;
                continue;
            }
            if (n_ <= small) {
                any_varies |= look_at_few(features[0], rows);
                continue;
            }
            if (n_ < few_rows) {
                for (std::size_t k = 0; k < n; ++k) any_varies |= look_at_some(features[k], rows);
                continue;
            }
            fill(features, n, rows);
            for (std::size_t k = 0; k < n; ++k)
                any_varies |= look_at_listed(
                    features[k], list_seen(cells_of(k), static_cast<std::size_t>(table_.n_codes(features[k])) + 1));
        }
    }
    int next_column(NodeRandom& random) { return used_[static_cast<std::size_t>(order_.next(random))]; }
    Packed* cells_of(std::size_t k) { return cells_.data() + k * (cells_.size() / together); }

    // Of the fewest rows, what goes left is summed up anew for each threshold.
    bool look_at_tiny(int feature, Rows rows) {
        const auto code_of = table_.reader(feature);
        const auto n = static_cast<std::size_t>(n_);
        const int n_codes = table_.n_codes(feature);
        std::array<int, tiny> code{};
        int least = n_codes, most = 0;
        for (std::size_t i = 0; i < n; ++i) {
            code[i] = std::min<int>(code_of(rows[i].row), n_codes);
            least = std::min(least, code[i]);
            most = std::max(most, code[i]);
        }
        if (least == most) return false;
        if (most == n_codes) return look_at_few(feature, rows);  // some are missing
        for (std::size_t i = 0; i < n; ++i) {
            if (code[i] == most) continue;
            Packed left;
            int next = most;  // code on the right
            for (std::size_t j = 0; j < n; ++j) {
                left.bits += code[j] <= code[i] ? Packed::one(q_[j]).bits : 0;
                next = code[j] > code[i] ? std::min(next, code[j]) : next;
            }
            judge({feature, (code[i] + next) / 2, false}, left, false);
        }
        return true;
    }

    // Of few rows, the codes are sorted by counting how many are before each.
    bool look_at_few(int feature, Rows rows) {
        const auto code_of = table_.reader(feature);
        const auto missing = static_cast<Code>(table_.n_codes(feature));
        const auto n = static_cast<std::size_t>(n_);
        std::array<std::int32_t, small> key, before{};
        key.fill(std::numeric_limits<std::int32_t>::max());
        for (std::size_t i = 0; i < n; ++i)
            key[i] = std::min(code_of(rows[i].row), missing) * static_cast<std::int32_t>(small) +
                     static_cast<std::int32_t>(i);
        for (std::size_t j = 0; j < n; ++j)
            for (std::size_t i = 0; i < small; ++i) before[i] += key[j] < key[i];
        std::array<std::int32_t, small> code{};
        std::array<Packed, small> value{};
        for (std::size_t i = 0; i < n; ++i) {
            const auto place = static_cast<std::size_t>(before[i]);
            code[place] = key[i] / static_cast<std::int32_t>(small);
            value[place] = Packed::one(q_[i]);
        }
        if (code[n - 1] == missing) return look_with_missing(feature, code.data(), value.data(), n);
        if (code[0] == code[n - 1]) return false;
        Packed left;
        Found found{best_.score, n};
        for (std::size_t i = 0; i + 1 < n; ++i) {
            left.add(value[i]);
            const double score = worth<true>(left.count(), left.sum());
            if (code[i] != code[i + 1]) found.offer(score, i, left, *this);
        }
        if (found.place < n) take(found, {feature, (code[found.place] + code[found.place + 1]) / 2, false});
        return true;
    }
    // Codes in ascending order, of which the last are missing. Returns whether they differ.
    bool look_with_missing(int feature, const std::int32_t* code, const Packed* value, std::size_t n) {
        const std::int32_t missing = code[n - 1];
        std::size_t n_known = n;
        Packed left, of_missing;
        for (; n_known > 0 && code[n_known - 1] == missing; --n_known) of_missing.add(value[n_known - 1]);
        if (n_known == 0) return false;
        for (std::size_t i = 0; i + 1 < n_known; ++i) {
            left.add(value[i]);
            if (code[i] == code[i + 1]) continue;
            Split split{feature, (code[i] + code[i + 1]) / 2, false};
            judge(split, left, true);
            split.missing_left = true;
            judge(split, left.with(of_missing), true);
        }
        judge({feature, missing - 1, false}, left.with(value[n_known - 1]), true);
        return true;
    }

    // The best of many splits: its score, its place among them and what goes left.
    struct Found {
        double score;
        std::size_t place;
        Packed left{};
        void offer(double other, std::size_t at, Packed of_left, const NumberSearch& search) {
            if (!(other > score) || !search.allows(of_left.count())) return;
            score = other;
            place = at;
            left = of_left;
        }
    };
    bool allows(std::int64_t n_left) const { return std::min(n_left, n_ - n_left) >= rule_.min_samples_leaf; }
    void take(const Found& found, Split split) {
        split.score = found.score;
        split.missing_left = found.left.count() > n_ - found.left.count();
        best_ = split;
    }

    void fill(const std::array<int, together>& features, std::size_t n_features, Rows rows) {
        [&]<std::size_t... n>(std::index_sequence<n...>) {
            ((n + 1 == n_features ? fill_columns(features, rows, std::make_index_sequence<n + 1>()) : void()), ...);
        }(std::make_index_sequence<together>());
    }
    template <std::size_t... k>
    void fill_columns(const std::array<int, together>& features, Rows rows, std::index_sequence<k...>) {
        const std::array<Packed*, sizeof...(k)> cells{cells_of(k)...};
        const std::array<Code, sizeof...(k)> missing{static_cast<Code>(table_.n_codes(features[k]))...};
        const std::int32_t* const q = q_.data();
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const Code* const codes = table_.row(rows[i].row);
            const Packed one = Packed::one(q[i]);
            (cells[k][std::min(codes[features[k]], missing[k])].add(one), ...);
        }
    }

    // Of some rows, most codes are not there: bits say which are.
    bool look_at_some(int feature, Rows rows) {
        const auto code_of = table_.reader(feature);
        const auto missing = static_cast<Code>(table_.n_codes(feature));
        Packed* const cells = cells_.data();
        std::uint64_t* const bits = bits_.data();
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const Code code = std::min(code_of(rows[i].row), missing);
            cells[code].add(Packed::one(q_[i]));
            bits[code / 64] |= std::uint64_t{1} << (code % 64);
        }
        std::size_t n = 0;
        for (std::size_t word = 0; word <= missing / 64u; ++word) {
            for (std::uint64_t left = bits[word]; left != 0; left &= left - 1) {
                const std::size_t code = word * 64 + static_cast<std::size_t>(std::countr_zero(left));
                seen_[n] = static_cast<std::int32_t>(code);
                value_[n++] = cells[code];
                cells[code] = {};
            }
            bits[word] = 0;
        }
        return look_at_listed(feature, n);
    }
    // Returns whether the column varies.
    bool look_at_listed(int feature, std::size_t n) {
        if (n < 2) return false;
        if (seen_[n - 1] == table_.n_codes(feature)) return look_with_missing(feature, seen_.data(), value_.data(), n);
        if (n_ <= n_weights)
            look_at_cells<true>(feature, n);
        else
            look_at_cells<false>(feature, n);
        return true;
    }
    // The codes that some rows have and their cells, which are cleared; without branches that cannot be foreseen.
    std::size_t list_seen(Packed* cells, std::size_t n_cells) {
        std::size_t n = 0;
        for (std::size_t code = 0; code < n_cells; ++code) {
            seen_[n] = static_cast<std::int32_t>(code);
            value_[n] = cells[code];
            n += cells[code].bits != 0;
            cells[code] = {};
        }
        return n;
    }
    template <bool by_table>
    void look_at_cells(int feature, std::size_t n) {
        Packed left;
        Found found{best_.score, n};
        for (std::size_t i = 0; i + 1 < n; ++i) {
            left.add(value_[i]);
            found.offer(worth<by_table>(left.count(), left.sum()), i, left, *this);
        }
        if (found.place < n) take(found, {feature, (seen_[found.place] + seen_[found.place + 1]) / 2, false});
    }

    // ---- one threshold a column, drawn evenly ----------------------------------------------------------------------

    struct Range {
        Code least, most;
    };

    void draw_one_by_one(Rows rows, NodeRandom& random) {
        bool any_varies = false;
        for (int n = 0; !order_.is_over() && (n < rule_.max_features || !any_varies) && !is_best_of_any(); ++n) {
            const int feature = next_column(random);
            const auto code_of = table_.reader(feature);
            Range range{std::numeric_limits<Code>::max(), 0};
            for (const auto& each : rows) widen(range, code_of(each.row));
            any_varies |= draw_and_judge(feature, range, rows, random);
        }
    }
    static void widen(Range& range, Code code) {
        range.least = std::min(range.least, code);
        range.most = std::max(range.most, code);
    }

    // The columns that are looked at are drawn first, then all of their sums are formed in one pass over the rows.
    void draw_together(Rows rows, NodeRandom& random) {
        for_all_columns([&](auto lanes, int first) { find_ranges<lanes()>(first, rows); });
        drawn_.clear();
        bool any_varies = false;
        std::fill(threshold_.begin(), threshold_.end(), Code{0});
        for (int n = 0; !order_.is_over() && (n < rule_.max_features || !any_varies); ++n) {
            const int feature = next_column(random);
            const Range range = range_[at(feature)];
            if (range.most >= table_.n_codes(feature)) {  // some are missing
                any_varies |= draw_and_judge_later(feature, range, rows, random);
            } else if (range.least < range.most) {
                any_varies = true;
                threshold_[at(feature)] = drawn_threshold(range, random);
                drawn_.push_back({feature, threshold_[at(feature)], false});
            }
        }
        for_all_columns([&](auto lanes, int first) { sum_left<lanes()>(first, rows); });
        for (const Drawn& each : drawn_)
            judge({each.feature, each.threshold, each.missing_left},
                  each.some_missing ? each.left : left_[at(each.feature)], each.some_missing);
    }
    static Code drawn_threshold(Range range, NodeRandom& random) {
        return static_cast<Code>(range.least + random.below(static_cast<std::uint64_t>(range.most - range.least)));
    }

    struct Drawn {
        int feature, threshold;
        bool missing_left, some_missing = false;
        Packed left{};
    };

    bool draw_and_judge(int feature, Range range, Rows rows, NodeRandom& random) {
        drawn_.clear();
        const bool varies = draw_and_judge_later(feature, range, rows, random);
        for (const Drawn& each : drawn_)
            judge({each.feature, each.threshold, each.missing_left}, each.left, each.some_missing);
        return varies;
    }
    // Returns whether the column varies.
    bool draw_and_judge_later(int feature, Range range, Rows rows, NodeRandom& random) {
        const auto code_of = table_.reader(feature);
        const int n_codes = table_.n_codes(feature);
        const bool some_missing = range.most >= n_codes;
        if (range.least >= n_codes) return false;
        if (some_missing) {
            range.most = 0;
            for (const auto& each : rows)
                if (const Code code = code_of(each.row); code < n_codes) range.most = std::max(range.most, code);
        }
        if (range.least == range.most && !some_missing) return false;
        Drawn drawn{feature, n_codes - 1, false, some_missing};
        if (range.least < range.most) {
            drawn.threshold = drawn_threshold(range, random);
            drawn.missing_left = some_missing && random.below(2) == 0;
        }
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const Code code = code_of(rows[i].row);
            const bool is_left = code < n_codes ? code <= drawn.threshold : drawn.missing_left;
            drawn.left.bits += is_left ? Packed::one(q_[i]).bits : 0;
        }
        drawn_.push_back(drawn);
        return true;
    }

    template <class Visit>
    void for_all_columns(Visit visit) {
        int first = 0;
        for (; first + Table::many <= table_.width(); first += Table::many)
            visit(std::integral_constant<int, Table::many>(), first);
        for (; first < table_.width(); first += Table::few) visit(std::integral_constant<int, Table::few>(), first);
    }

    template <int lanes>
    void find_ranges(int first, Rows rows) {
        Code filled[lanes];
        std::fill_n(filled, lanes, std::numeric_limits<Code>::max());
        numerics::Vector<Code, lanes> codes{}, least{}, most{};
        numerics::load<Code, lanes>(filled, least);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (i + ahead < rows.size()) EVERYTREE_PREFETCH(table_.row(rows[i + ahead].row));
            numerics::load<Code, lanes>(table_.row(rows[i].row) + first, codes);
            numerics::keep_least<Code, lanes>(least, codes);
            numerics::keep_most<Code, lanes>(most, codes);
        }
        for (int k = 0; k < lanes; ++k) range_[at(first + k)] = {least[k], most[k]};
    }

    template <int lanes>
    void sum_left(int first, Rows rows) {
        numerics::Vector<Code, lanes> codes{}, threshold{};
        numerics::load<Code, lanes>(threshold_.data() + first, threshold);
        std::int64_t sums[lanes] = {}, counts[lanes] = {};
        for (std::size_t begin = 0; begin < rows.size(); begin += rows_a_turn) {
            const std::size_t end = std::min(begin + rows_a_turn, rows.size());
            numerics::Vector<std::conditional_t<Targets::are_whole, Code, std::int32_t>, lanes> sum{};
            numerics::Vector<Code, lanes> count{};
            for (std::size_t i = begin; i < end; ++i) {
                numerics::load<Code, lanes>(table_.row(rows[i].row) + first, codes);
                if constexpr (Targets::are_whole)
                    numerics::count_where_at_most<Code, lanes>(codes, threshold, q_[i], count, sum);
                else
                    numerics::add_where_at_most<Code, lanes>(codes, threshold, q_[i], count, sum);
            }
            for (int k = 0; k < lanes; ++k) {
                sums[k] += sum[k];
                counts[k] += count[k];
            }
        }
        for (int k = 0; k < lanes; ++k) left_[at(first + k)] = {sums[k] * Packed::most_rows + counts[k]};
    }

    static std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }

    static constexpr std::int64_t n_weights = 4096;

    const Table& table_;
    GrowRule rule_;
    std::vector<int> used_;
    RandomOrder order_;
    std::vector<Packed> cells_;
    std::vector<std::int32_t> seen_;
    std::vector<Packed> value_;
    std::vector<std::uint64_t> bits_;
    std::vector<Range> range_;
    std::vector<Code> threshold_;
    std::vector<Packed> left_;
    std::vector<Drawn> drawn_;
    std::vector<std::int32_t> q_;
    std::array<double, n_weights> weights_{};
    std::int64_t n_ = 0, total_ = 0;
    double unit_ = 1.0, ceiling_ = 0.0;
    Split best_;
};

}  // namespace everytree::grow
