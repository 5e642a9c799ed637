// A lock for one thread at a time, also in a process that was forked while a thread of its parent was working.
#pragma once
#ifndef _WIN32
#include <pthread.h>
#endif

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <new>
#include <stdexcept>

#include "bind/common.hpp"

namespace everytree::bind {

// Threads have numbers from 1 on. None is used twice, neither in a process nor in those that are forked from it. Only
// one thread survives a fork, so a number from before the fork belongs to that thread or to none.
class ThreadNumber {
  public:
    static std::uint64_t mine() {
        thread_local std::uint64_t number = 0;
        if (number == 0) number = ++last_;
        return number;
    }
    static bool is_gone(std::uint64_t number) { return number <= last_before_fork_ && number != left_by_fork_; }
    static void forked() {
        left_by_fork_ = mine();
        last_before_fork_ = last_.load();
    }

  private:
    inline static std::atomic<std::uint64_t> last_{0}, last_before_fork_{0}, left_by_fork_{0};
};

// Where threads wait for any guard: one object per process, so that a fork can create it again.
struct Parking {
    std::mutex mutex;
    std::condition_variable freed;

    static Parking& lot() {
        static Parking* const only = new Parking;  // never deleted: threads may still sleep when the process ends
        return *only;
    }
    static void forked() { new (&lot()) Parking; }  // its old state may belong to threads that no longer exist
};

// One thread at a time. Taken while holding the GIL if it is free, and waited for without the GIL if it is not, so
// that its holder can continue. Recursive: a thread that holds several posteriors may update each.
//
// A fork copies the guard as it is, but not the thread that holds it. A reader that no longer exists left everything
// intact, and its guard is free. A writer that no longer exists left the arrays in the middle of its work: they are
// never read again, and every use raises an error. Writing begins and ends while holding the GIL, which the thread that
// forks holds: a copy never has new values without the mark of the writer. Free-threaded Python has no GIL, but stops
// all threads before it forks, and never between two lines of C++ that would hold the GIL.
class Guard {
  public:
    // The guard of a thread that changes the protected arrays.
    class Writing {
      public:
        explicit Writing(Guard& guard) : guard_(guard) {}
        void lock() {
            guard_.lock();
            ++guard_.n_writes_;
        }
        void unlock() {
            --guard_.n_writes_;
            guard_.unlock();
        }

      private:
        Guard& guard_;
    };

    Guard() = default;
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

    void lock() {
        const std::uint64_t me = ThreadNumber::mine();
        if (holder_.load(std::memory_order_relaxed) == me) {
            ++depth_;
            return;
        }
        std::uint64_t nobody = 0;
        if (!holder_.compare_exchange_strong(nobody, me)) wait(me);
        depth_ = 1;
    }
    void unlock() {
        if (--depth_ > 0) return;
        holder_ = 0;
        if (n_waiting_ == 0) return;
        std::lock_guard parked(Parking::lot().mutex);  // never between the test of the holder and the wait that follows
        Parking::lot().freed.notify_all();
    }

    Writing writing{*this};

    // To be called once in a process, before any guard is taken.
    static void watch_forks() {
#ifndef _WIN32
        pthread_atfork(nullptr, nullptr, [] {
            ThreadNumber::forked();
            Parking::forked();
        });
#endif
    }

  private:
    void wait(std::uint64_t me) {
        nb::gil_scoped_release released;
        Counted counted(n_waiting_);
        std::unique_lock parked(Parking::lot().mutex);
        for (std::uint64_t holder = 0; !holder_.compare_exchange_strong(holder, me); holder = 0) {
            if (ThreadNumber::is_gone(holder)) {
                refuse_half_written();
                if (holder_.compare_exchange_strong(holder, me)) return;
                continue;
            }
            if (Parking::lot().freed.wait_for(parked, std::chrono::milliseconds(100)) == std::cv_status::no_timeout)
                continue;
            parked.unlock();
            check_signals();
            parked.lock();
        }
    }
    void refuse_half_written() const {
        if (n_writes_ > 0)
            throw std::runtime_error(
                "this model was being changed by another thread when the process was forked, so its state is "
                "incomplete in this process; fork while no thread changes it, or load the model here");
    }
    struct Counted {
        explicit Counted(std::atomic<int>& count) : count_(count) { ++count_; }
        ~Counted() { --count_; }
        std::atomic<int>& count_;
    };

    std::atomic<std::uint64_t> holder_{0};  // the number of a thread; 0 for none
    std::atomic<int> n_waiting_{0};         // an upper bound: those of a fork's parent are counted too
    int depth_ = 0, n_writes_ = 0;          // of the holder alone
};

}  // namespace everytree::bind
