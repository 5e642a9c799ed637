// The clock of an exact sum, checked from inside long work, and whether the caller wants it to stop.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

namespace everytree::exact {

// Thrown if work has to end: the time or the budget is spent.
struct BudgetSpent {};

class Watch {
  public:
    using Clock = std::chrono::steady_clock;

    // `poll` is called on the caller's thread from time to time and may throw.
    explicit Watch(std::function<void()> poll = {}) : poll_(std::move(poll)) {}

    double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
    // Work past this many seconds from the start is out of time. Set between pieces of work, not during one.
    void set_deadline(double seconds) { deadline_ = seconds; }

    void look(bool is_caller) const {
        const double now = elapsed();
        if (is_caller && now >= next_poll_) {
            next_poll_ = now + seconds_between_polls;
            if (poll_) poll_();
        }
        if (now >= deadline_) throw BudgetSpent{};
    }

  private:
    static constexpr double seconds_between_polls = 0.05;
    Clock::time_point start_ = Clock::now();
    double deadline_ = std::numeric_limits<double>::infinity();
    std::function<void()> poll_;
    mutable double next_poll_ = seconds_between_polls;  // the caller's thread alone reads and writes it
};

// Counts a thread's steps, so that the watch is checked after many of them; a step is a word of rows, or less.
struct Pace {
    const Watch* watch = nullptr;
    bool is_caller = false;
    std::int64_t n_steps = 0;

    void spend(std::int64_t n) {
        n_steps += n;
        if (n_steps < steps_between_looks) return;
        n_steps = 0;
        if (watch) watch->look(is_caller);
    }

  private:
    static constexpr std::int64_t steps_between_looks = 1 << 17;
};

}  // namespace everytree::exact
