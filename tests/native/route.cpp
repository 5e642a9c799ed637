// The routing rule against a walk over the arrays that define the tree.
#include "core/route.hpp"

#include "check.hpp"
#include "trees.hpp"

namespace native_tests {
namespace {

constexpr int n_rows = 100;

template <class Code>
void check_codes(const RandomTree& tree, const everytree::TreeShape& shape, const std::vector<int>& rows) {
    std::vector<Code> codes;
    for (const int code : rows) codes.push_back(code < 0 ? everytree::missing_code<Code> : static_cast<Code>(code));
    std::vector<std::int32_t> at(n_rows, 0);
    everytree::route<Code>(shape.view(), {codes.data(), n_columns}, 0, n_rows, at.data());
    for (int i = 0; i < n_rows; ++i) CHECK(at[static_cast<std::size_t>(i)] == tree.terminal_of(&rows[n_columns * i]));
}

// The same table as another type of numbers, column after column.
void check_table(const RandomTree& tree, const everytree::TreeShape& shape, const std::vector<int>& rows, int n_jobs) {
    std::vector<std::int64_t> columns(rows.size());
    for (int i = 0; i < n_rows; ++i)
        for (int k = 0; k < n_columns; ++k)
            columns[static_cast<std::size_t>(k * n_rows + i)] = rows[static_cast<std::size_t>(i * n_columns + k)];
    const everytree::CodeChecks checks(shape.limits());
    const everytree::CodeTable table{reinterpret_cast<const char*>(columns.data()),
                                     sizeof(std::int64_t),
                                     n_rows * sizeof(std::int64_t),
                                     everytree::Scalar::int64,
                                     n_rows,
                                     n_columns};
    const auto at = everytree::route_table<std::uint8_t>(shape.view(), checks, table, n_jobs);
    for (int i = 0; i < n_rows; ++i) CHECK(at[static_cast<std::size_t>(i)] == tree.terminal_of(&rows[n_columns * i]));
    columns[5] = 255;
    bool is_refused = false;
    try {
        everytree::route_table<std::uint8_t>(shape.view(), checks, table, n_jobs);
    } catch (const std::invalid_argument&) {
        is_refused = true;
    }
    CHECK(is_refused);
}

}  // namespace

void test_route() {
    Random random(2);
    for (int i = 0; i < 100; ++i) {
        const RandomTree tree(random, 1 + random.below(20), i % 2 == 0);
        const everytree::TreeShape shape(tree.arrays(), n_columns);
        std::vector<int> rows(n_rows * n_columns);
        for (int row = 0; row < n_rows; ++row) tree.draw_row(random, &rows[static_cast<std::size_t>(n_columns * row)]);
        check_codes<std::uint8_t>(tree, shape, rows);
        check_codes<std::uint16_t>(tree, shape, rows);
        check_table(tree, shape, rows, 1 + i % 3);
    }
}

}  // namespace native_tests
