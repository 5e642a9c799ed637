// Numbers for keys of 128 well mixed bits, in order of first appearance: one flat table without pointers.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace everytree::exact {

struct Key {
    std::uint64_t one = 0, two = 0;
    bool operator==(const Key&) const = default;
    Key operator+(const Key& other) const { return {one + other.one, two + other.two}; }
    Key operator-(const Key& other) const { return {one - other.one, two - other.two}; }
};

class KeyIndex {
    static constexpr std::int32_t none = -1;
    struct Slot {
        Key key;
        std::int32_t number;
    };

  public:
    // Memory for each key, at most: two to four slots.
    static constexpr std::size_t most_bytes_each = 4 * sizeof(Slot);

    // Room for this many keys; it grows if there are more.
    explicit KeyIndex(std::size_t n_expected = 500) : slots_(std::bit_ceil(2 * n_expected + 2), Slot{{}, none}) {}

    // The key's number, and whether it is new.
    std::pair<std::int32_t, bool> number(const Key& key) {
        if (2 * (n_ + 1) > slots_.size()) grow();
        Slot& slot = slots_[place_of(key)];
        if (slot.number != none) return {slot.number, false};
        slot = {key, static_cast<std::int32_t>(n_)};
        return {static_cast<std::int32_t>(n_++), true};
    }

    // The key's number, -1 if it has none.
    std::int32_t find(const Key& key) const { return slots_[place_of(key)].number; }

    // Prefetches the memory that `number` will read: most of its time is waiting for that.
    void expect(const Key& key) const {
#if defined(__GNUC__)
        __builtin_prefetch(&slots_[key.one & (slots_.size() - 1)]);
#else
        (void)key;
#endif
    }

  private:
    // Of the key's slot, or of the free one that it would get.
    std::size_t place_of(const Key& key) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = key.one & mask;
        while (slots_[at].number != none && !(slots_[at].key == key)) at = (at + 1) & mask;
        return at;
    }
    void grow() {
        std::vector<Slot> old(slots_.size() * 2, Slot{{}, none});
        old.swap(slots_);
        for (const Slot& slot : old)
            if (slot.number != none) slots_[place_of(slot.key)] = slot;
    }
    std::vector<Slot> slots_;
    std::size_t n_ = 0;
};

}  // namespace everytree::exact
