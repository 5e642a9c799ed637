// Prediction by lookup. All leaves with conditions on the same columns form one table over the codes of these columns:
// each of its cells is the sum over the leaves that hold it, so a row costs one lookup per set of columns, however many
// leaves there are. Codes that no leaf of a set distinguishes share a cell.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "exact/conditions.hpp"
#include "exact/watch.hpp"

namespace everytree::exact {

struct ColumnView {
    const std::vector<int>& n_codes;
    const std::vector<ColumnKind>& kinds;

    bool holds(std::int32_t column, CodeSet set, std::int32_t code) const {
        if (set == unknown_codes) return code >= n_codes[column];
        if (code >= n_codes[column]) return false;
        if (kinds[column] == ColumnKind::ordered) return code >= lowest_of(set) && code <= highest_of(set);
        return set >> code & 1;
    }
    bool allows(std::int32_t column, CodeSet set) const {
        return set == unknown_codes || kinds[column] != ColumnKind::ordered ||
               (highest_of(set) < n_codes[column] && highest_of(set) >= lowest_of(set));
    }
};

struct LeafView {
    std::int64_t n_leaves;
    const double* weight;
    const std::int64_t* start;
    const std::int32_t* column;
    const std::uint64_t* codes;

    void check(std::int64_t n_conditions, const ColumnView& columns) const {
        if (start[0] != 0 || start[n_leaves] != n_conditions) throw std::invalid_argument("leaves of the wrong size");
        for (std::int64_t leaf = 0; leaf < n_leaves; ++leaf)
            if (start[leaf + 1] < start[leaf]) throw std::invalid_argument("leaves out of order");
        for (std::int64_t c = 0; c < n_conditions; ++c) {
            if (column[c] < 0 || column[c] >= static_cast<std::int32_t>(columns.n_codes.size()))
                throw std::invalid_argument("no such column");
            if (!columns.allows(column[c], codes[c])) throw std::invalid_argument("codes out of range");
        }
    }
    bool holds(std::int64_t leaf, const std::uint16_t* row, const ColumnView& columns) const {
        for (std::int64_t c = start[leaf]; c < start[leaf + 1]; ++c)
            if (!columns.holds(column[c], codes[c], row[column[c]])) return false;
        return true;
    }
};

// The leaves that hold each row: the start of its entries, and the leaves.
struct LeavesOfRows {
    std::vector<std::int64_t> start{0}, leaves;
};
inline LeavesOfRows leaves_of_rows(const LeafView& leaves, const ColumnView& columns, const std::uint16_t* codes,
                                   std::size_t n_rows, const Watch& watch) {
    LeavesOfRows out;
    Pace pace{&watch, true};
    for (std::size_t i = 0; i < n_rows; ++i) {
        pace.spend(leaves.n_leaves);
        for (std::int64_t leaf = 0; leaf < leaves.n_leaves; ++leaf)
            if (leaves.holds(leaf, codes + i * columns.n_codes.size(), columns)) out.leaves.push_back(leaf);
        out.start.push_back(static_cast<std::int64_t>(out.leaves.size()));
    }
    return out;
}

struct AnswerTables {
    std::vector<std::int64_t> set_start{0};   // of each set's columns
    std::vector<std::int32_t> column;         // of all sets
    std::vector<std::int64_t> map_start{0};   // of each of these columns' map from codes to offsets in the table
    std::vector<std::int32_t> place;          // one per code and one for unknown codes; offsets add up to a cell
    std::vector<std::int64_t> first_cell{0};  // of each set
    std::vector<double> cells;                // (n_cells, width)
};

// The leaves of each set of columns, and the layout of its table. The watch is checked now and then.
class TableBuilder {
  public:
    TableBuilder(const LeafView& leaves, const ColumnView& columns, bool with_unknown, const Watch& watch)
        : leaves_(leaves), columns_(columns), with_unknown_(with_unknown), watch_(watch) {
        group_leaves();
        for (std::size_t set = 0; set < leaves_of_.size(); ++set) lay_out(set);
    }
    std::int64_t n_cells() const { return out_.first_cell.back(); }
    // Number of additions that `fill` will make, for one value.
    double n_steps() const {
        double n = 0.0;
        for (std::size_t set = 0; set < leaves_of_.size(); ++set) {
            watch_.look(true);
            const std::int64_t wide = wide_column(set);
            for (const std::int64_t leaf : leaves_of_[set]) n += n_cells_of(set, leaf, wide);
        }
        return n;
    }

    // Sums of weight times value over the leaves that hold each cell. Values: (n_leaves, width).
    AnswerTables fill(const double* values, std::size_t width, int n_jobs) {
        out_.cells.assign(static_cast<std::size_t>(n_cells()) * width, 0.0);
        std::vector<FillScratch> scratch(static_cast<std::size_t>(std::max(n_jobs, 1)));
        for (std::size_t worker = 0; worker < scratch.size(); ++worker) scratch[worker].pace = {&watch_, worker == 0};
        in_ordered_chunks(
            static_cast<std::int64_t>(leaves_of_.size()), n_jobs,
            [&](std::int64_t set, int worker) {
                const auto number = static_cast<std::size_t>(set);
                const std::int64_t wide = wide_column(number);
                if (wide < 0)
                    fill_set(number, values, width, scratch[worker]);
                else
                    fill_wide_set(number, wide, values, width, scratch[worker]);
            },
            [](std::int64_t, int) {});
        return std::move(out_);
    }

  private:
    struct FillScratch {
        std::vector<std::int64_t> cells, next;
        std::vector<double> sums;  // of stretches of groups
        Pace pace;
    };
    static void add_times(double weight, const double* values, std::size_t width, double* sum) {
        for (std::size_t v = 0; v < width; ++v) sum[v] += weight * values[v];
    }

    void fill_set(std::size_t set, const double* values, std::size_t width, FillScratch& scratch) {
        for (const std::int64_t leaf : leaves_of_[set]) {
            find_cells(set, leaf, -1, scratch);
            scratch.pace.spend(steps_of_leaf + static_cast<std::int64_t>(scratch.cells.size()));
            for (const std::int64_t cell : scratch.cells)
                add_times(leaves_.weight[leaf], values + leaf * static_cast<std::int64_t>(width), width,
                          out_.cells.data() + cell * static_cast<std::int64_t>(width));
        }
    }

    // The index of the ordered column of a set with the most groups, or -1 if none has many.
    std::int64_t wide_column(std::size_t set) const {
        std::int64_t wide = -1;
        std::size_t most = 64;
        for (std::int64_t j = out_.set_start[set]; j < out_.set_start[set + 1]; ++j)
            if (columns_.kinds[out_.column[j]] == ColumnKind::ordered && one_of_group_[j].size() > most) {
                wide = j;
                most = one_of_group_[j].size();
            }
        return wide;
    }

    // A leaf holds a range of a wide column's groups. A range is the sum of a few nodes 1 .. 2 n - 1 of a binary tree,
    // the last n of which are the groups themselves, so that a leaf costs the logarithm of n; in the end each group
    // adds up the nodes above it.
    void fill_wide_set(std::size_t set, std::int64_t wide, const double* values, std::size_t width,
                       FillScratch& scratch) {
        const auto n = static_cast<std::int64_t>(one_of_group_[wide].size()),
                   n_values = static_cast<std::int64_t>(width);
        const std::int64_t first = out_.first_cell[set];
        const std::int64_t stride = out_.place[out_.map_start[wide] + one_of_group_[wide][1]];
        const std::int64_t n_others = (out_.first_cell[set + 1] - first) / n;
        // Cells of group 0, and a number for each of them.
        const auto number_of = [&](std::int64_t cell) {
            return (cell - first) % stride + (cell - first) / (stride * n) * stride;
        };
        scratch.sums.assign(static_cast<std::size_t>(n * n_others) * width, 0.0);
        const auto sum_of = [&](std::int64_t node, std::int64_t cell) {
            return node >= n ? out_.cells.data() + (cell + (node - n) * stride) * n_values
                             : scratch.sums.data() + (node * n_others + number_of(cell)) * n_values;
        };
        for (const std::int64_t leaf : leaves_of_[set]) {
            find_cells(set, leaf, wide, scratch);
            scratch.pace.spend(steps_of_leaf + static_cast<std::int64_t>(scratch.cells.size()));
            const auto [lowest, highest] =
                groups_of(wide, leaves_.codes[leaves_.start[leaf] + wide - out_.set_start[set]]);
            const auto add_to = [&](std::int64_t node) {
                for (const std::int64_t cell : scratch.cells)
                    add_times(leaves_.weight[leaf], values + leaf * n_values, width, sum_of(node, cell));
            };
            for (std::int64_t begin = lowest + n, end = highest + n + 1; begin < end; begin /= 2, end /= 2) {
                if (begin % 2 == 1) add_to(begin++);
                if (end % 2 == 1) add_to(--end);
            }
        }
        for (std::int64_t other = 0; other < n_others; ++other) {
            scratch.pace.spend(n);
            const std::int64_t cell = first + other % stride + other / stride * (stride * n);
            for (std::int64_t node = n; node < 2 * n; ++node)
                for (std::int64_t above = node / 2; above >= 1; above /= 2)
                    add_times(1.0, sum_of(above, cell), width, sum_of(node, cell));
        }
    }
    // First and last group of an ordered column's codes; unknown codes are a group of their own.
    std::pair<std::int64_t, std::int64_t> groups_of(std::int64_t j, CodeSet codes) const {
        const std::int32_t* place = out_.place.data() + out_.map_start[j];
        const std::int64_t stride = place[one_of_group_[j][1]];
        const int n_codes = columns_.n_codes[out_.column[j]];
        if (codes == unknown_codes) return {place[n_codes] / stride, place[n_codes] / stride};
        return {place[lowest_of(codes)] / stride, place[highest_of(codes)] / stride};
    }

    void group_leaves() {
        KeyIndex known;
        Pace pace{&watch_, true};
        for (std::int64_t leaf = 0; leaf < leaves_.n_leaves; ++leaf) {
            pace.spend(steps_of_leaf);
            Key key;
            for (std::int64_t c = leaves_.start[leaf]; c < leaves_.start[leaf + 1]; ++c)
                key = key + key_of(Condition{leaves_.column[c], 0});
            const auto [set, is_new] = known.number(key);
            if (is_new) {
                leaves_of_.emplace_back();
                out_.column.insert(out_.column.end(), leaves_.column + leaves_.start[leaf],
                                   leaves_.column + leaves_.start[leaf + 1]);
                out_.set_start.push_back(static_cast<std::int64_t>(out_.column.size()));
            }
            leaves_of_[set].push_back(leaf);
        }
        sort_sets();
    }
    // In order of their columns, so that consecutive sets have most of them in common.
    void sort_sets() {
        const auto columns_of = [&](std::size_t set) {
            return std::vector<std::int32_t>(out_.column.begin() + out_.set_start[set],
                                             out_.column.begin() + out_.set_start[set + 1]);
        };
        std::vector<std::pair<std::vector<std::int32_t>, std::size_t>> order;
        for (std::size_t set = 0; set < leaves_of_.size(); ++set) order.emplace_back(columns_of(set), set);
        std::sort(order.begin(), order.end());
        std::vector<std::vector<std::int64_t>> sorted;
        out_.column.clear();
        out_.set_start.assign(1, 0);
        for (const auto& [own, set] : order) {
            sorted.push_back(std::move(leaves_of_[set]));
            out_.column.insert(out_.column.end(), own.begin(), own.end());
            out_.set_start.push_back(static_cast<std::int64_t>(out_.column.size()));
        }
        leaves_of_.swap(sorted);
    }

    // Maps of one set's columns: codes that its leaves do not distinguish have the same offset.
    void lay_out(std::size_t set) {
        std::int64_t n_cells = 1;
        watch_.look(true);
        for (std::int64_t j = out_.set_start[set]; j < out_.set_start[set + 1]; ++j) {
            const std::int32_t column = out_.column[j];
            std::vector<CodeSet> distinct;
            for (const std::int64_t leaf : leaves_of_[set])
                distinct.push_back(leaves_.codes[leaves_.start[leaf] + j - out_.set_start[set]]);
            std::sort(distinct.begin(), distinct.end());
            distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
            std::vector<std::int32_t> group = groups(column, distinct);
            std::vector<std::int32_t> one_of;  // a code of each group
            for (std::int32_t code = 0; code < static_cast<std::int32_t>(group.size()); ++code) {
                if (group[code] == static_cast<std::int32_t>(one_of.size())) one_of.push_back(code);
                const std::int64_t place = group[code] * n_cells;
                if (place > std::numeric_limits<std::int32_t>::max()) throw std::length_error("tables too large");
                out_.place.push_back(static_cast<std::int32_t>(place));
            }
            n_cells *= static_cast<std::int64_t>(one_of.size());
            out_.map_start.push_back(static_cast<std::int64_t>(out_.place.size()));
            one_of_group_.push_back(std::move(one_of));
        }
        out_.first_cell.push_back(out_.first_cell.back() + n_cells);
    }

    // The group of each code, numbered in order of first appearance; the last is that of unknown codes.
    std::vector<std::int32_t> groups(std::int32_t column, const std::vector<CodeSet>& distinct) const {
        const int n = columns_.n_codes[column];
        std::vector<std::int32_t> group(static_cast<std::size_t>(n) + 1, 0);
        if (columns_.kinds[column] == ColumnKind::ordered) {
            std::vector<std::int32_t> starts(static_cast<std::size_t>(n) + 1, 0);
            for (const CodeSet set : distinct) {
                if (set == unknown_codes) continue;
                starts[lowest_of(set)] = starts[highest_of(set) + 1] = 1;
            }
            for (int code = 1; code < n; ++code) group[code] = group[code - 1] + starts[code];
        } else {
            for (const CodeSet set : distinct)
                if (set != unknown_codes) part_by(set, n, group);
        }
        group[n] = with_unknown_ ? *std::max_element(group.begin(), group.end() - 1) + 1 : 0;
        return group;
    }
    // Groups that are partly in a set become two, and are numbered again in order of appearance.
    static void part_by(CodeSet set, int n, std::vector<std::int32_t>& group) {
        std::vector<std::pair<std::int32_t, bool>> seen;
        for (int code = 0; code < n; ++code) {
            const std::pair<std::int32_t, bool> own{group[code], set >> code & 1};
            const auto at = std::find(seen.begin(), seen.end(), own);
            group[code] = static_cast<std::int32_t>(at - seen.begin());
            if (at == seen.end()) seen.push_back(own);
        }
    }

    // Number of cells that a leaf holds; of a wide column, of a path in its tree instead.
    double n_cells_of(std::size_t set, std::int64_t leaf, std::int64_t wide) const {
        double n = 1.0;
        for (std::int64_t j = out_.set_start[set]; j < out_.set_start[set + 1]; ++j) {
            const CodeSet codes = leaves_.codes[leaves_.start[leaf] + j - out_.set_start[set]];
            if (j == wide) {
                n *= static_cast<double>(std::bit_width(one_of_group_[j].size()));
            } else {
                n *= static_cast<double>(
                    std::count_if(one_of_group_[j].begin(), one_of_group_[j].end(),
                                  [&](std::int32_t code) { return columns_.holds(out_.column[j], codes, code); }));
            }
        }
        return n;
    }

    // The cells of the set's table that a leaf holds; of one of its columns, if any, the first group alone.
    void find_cells(std::size_t set, std::int64_t leaf, std::int64_t without, FillScratch& scratch) const {
        scratch.cells.assign(1, out_.first_cell[set]);
        for (std::int64_t j = out_.set_start[set]; j < out_.set_start[set + 1]; ++j) {
            if (j == without) continue;
            const CodeSet codes = leaves_.codes[leaves_.start[leaf] + j - out_.set_start[set]];
            scratch.next.clear();
            for (const std::int32_t code : one_of_group_[j])
                if (columns_.holds(out_.column[j], codes, code))
                    for (const std::int64_t cell : scratch.cells)
                        scratch.next.push_back(cell + out_.place[out_.map_start[j] + code]);
            scratch.cells.swap(scratch.next);
        }
    }

    static constexpr std::int64_t steps_of_leaf = 16;

    LeafView leaves_;
    ColumnView columns_;
    bool with_unknown_;
    const Watch& watch_;
    AnswerTables out_;
    std::vector<std::vector<std::int64_t>> leaves_of_;
    std::vector<std::vector<std::int32_t>> one_of_group_;
};

struct LookUpScratch {
    std::vector<std::uint16_t> by_column;         // codes of the rows, column by column
    std::vector<std::vector<std::int32_t>> upto;  // sums of the offsets of a set's first columns
};

struct TablesView {
    std::int64_t n_sets, width;
    const std::int64_t* set_start;
    const std::int32_t* column;
    const std::int64_t* map_start;
    const std::int32_t* place;
    const std::int64_t* first_cell;
    const double* cells;
    std::int64_t n_columns;
    const std::int32_t* n_codes;

    // Checks that every lookup of codes 0 .. n_codes, the last of which is the unknown one, is inside its set's table.
    void check(std::int64_t n_set_columns, std::int64_t n_maps, std::int64_t n_places, std::int64_t n_cells) const {
        if (set_start[0] != 0 || set_start[n_sets] != n_set_columns || n_maps != n_set_columns || map_start[0] != 0 ||
            map_start[n_maps] != n_places || first_cell[0] != 0 || first_cell[n_sets] != n_cells)
            throw std::invalid_argument("tables out of range");
        for (std::int64_t set = 0; set < n_sets; ++set) {
            if (set_start[set + 1] < set_start[set] || set_start[set + 1] > n_set_columns)
                throw std::invalid_argument("sets of columns out of order");
            std::int64_t last_cell = 0;
            for (std::int64_t j = set_start[set]; j < set_start[set + 1]; ++j) {
                if (column[j] < 0 || column[j] >= n_columns) throw std::invalid_argument("no such column");
                if (map_start[j + 1] - map_start[j] != n_codes[column[j]] + std::int64_t{1} || map_start[j] < 0 ||
                    map_start[j + 1] > n_places)
                    throw std::invalid_argument("one place a code");
                std::int32_t largest = 0;
                for (std::int64_t i = map_start[j]; i < map_start[j + 1]; ++i) {
                    if (place[i] < 0) throw std::invalid_argument("places out of range");
                    largest = std::max(largest, place[i]);
                }
                last_cell += largest;
            }
            if (last_cell >= first_cell[set + 1] - first_cell[set]) throw std::invalid_argument("cells out of range");
        }
    }

    // The number of first columns that each set has in common with the one before, including their maps.
    std::vector<std::int32_t> shared() const {
        std::vector<std::int32_t> n_shared(static_cast<std::size_t>(n_sets), 0);
        for (std::int64_t set = 1; set < n_sets; ++set) {
            const std::int64_t own = set_start[set], before = set_start[set - 1];
            const std::int64_t most = std::min(set_start[set + 1] - own, own - before) - 1;
            std::int32_t& n = n_shared[set];
            while (
                n < most && column[own + n] == column[before + n] &&
                std::equal(place + map_start[own + n], place + map_start[own + n + 1], place + map_start[before + n]))
                ++n;
        }
        return n_shared;
    }

    // Adds up the cells of some rows, (n_rows, width). Sets in the outer loop: a table stays in the cache for all rows,
    // and the part in common with the set before is not added up again.
    void look_up(const std::uint16_t* codes, std::size_t n_rows, const std::vector<std::int32_t>& n_shared, double* out,
                 LookUpScratch& scratch) const {
        transpose(codes, n_rows, scratch);
        scratch.upto.assign(1, std::vector<std::int32_t>(n_rows, 0));  // blocks of rows differ in size
        for (std::int64_t set = 0; set < n_sets; ++set) {
            const auto n = static_cast<std::size_t>(set_start[set + 1] - set_start[set]);
            const double* table = cells + first_cell[set] * width;
            if (n == 0) {
                for (std::size_t i = 0; i < n_rows * width; ++i) out[i] += table[i % width];
                continue;
            }
            if (scratch.upto.size() < n) scratch.upto.resize(n, std::vector<std::int32_t>(n_rows));
            for (std::size_t j = n_shared[set]; j + 1 < n; ++j) {
                const auto [of_code, own] = map_of(set_start[set] + j, n_rows, scratch);
                for (std::size_t i = 0; i < n_rows; ++i) scratch.upto[j + 1][i] = scratch.upto[j][i] + of_code[own[i]];
            }
            const auto [of_code, own] = map_of(set_start[set + 1] - 1, n_rows, scratch);
            const std::int32_t* upto = scratch.upto[n - 1].data();
            if (width == 2)
                add_cells<2>(n_rows, upto, of_code, own, table, out);
            else
                add_cells<0>(n_rows, upto, of_code, own, table, out);
        }
    }

    // All rows, on several threads; `out` is zero at first.
    void look_up_all(const std::uint16_t* codes, std::size_t n_rows, const std::vector<std::int32_t>& n_shared,
                     int n_jobs, double* out) const {
        constexpr std::size_t together = 512;
        std::vector<LookUpScratch> scratch(static_cast<std::size_t>(std::max(n_jobs, 1)));
        const auto work = [&](std::int64_t chunk, int worker) {
            const std::size_t first = static_cast<std::size_t>(chunk) * together;
            look_up(codes + first * static_cast<std::size_t>(n_columns), std::min(together, n_rows - first), n_shared,
                    out + first * static_cast<std::size_t>(width), scratch[worker]);
        };
        in_chunks(static_cast<std::int64_t>((n_rows + together - 1) / together), n_jobs, work);
    }

  private:
    void transpose(const std::uint16_t* codes, std::size_t n_rows, LookUpScratch& scratch) const {
        scratch.by_column.resize(static_cast<std::size_t>(n_columns) * n_rows);
        for (std::size_t i = 0; i < n_rows; ++i)
            for (std::int64_t k = 0; k < n_columns; ++k)
                scratch.by_column[k * n_rows + i] =
                    static_cast<std::uint16_t>(std::min<std::int32_t>(codes[i * n_columns + k], n_codes[k]));
    }
    std::pair<const std::int32_t*, const std::uint16_t*> map_of(std::int64_t j, std::size_t n_rows,
                                                                const LookUpScratch& scratch) const {
        return {place + map_start[j], scratch.by_column.data() + column[j] * n_rows};
    }
    template <int fixed>  // width if it is known beforehand, or 0
    void add_cells(std::size_t n_rows, const std::int32_t* upto, const std::int32_t* of_code, const std::uint16_t* own,
                   const double* table, double* out) const {
        const std::int64_t n = fixed ? fixed : width;
        for (std::size_t i = 0; i < n_rows; ++i) {
            const double* cell = table + static_cast<std::int64_t>(upto[i] + of_code[own[i]]) * n;
            for (std::int64_t v = 0; v < n; ++v) out[i * n + v] += cell[v];
        }
    }
};

}  // namespace everytree::exact
