// Threads over fixed chunks of rows. Created per call, so that a fork never finds threads of an earlier call.
#pragma once
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace everytree {

// Calls run(worker) on this many threads, including the calling one. If fewer can be created, it only takes longer.
template <class Run>
void on_threads(std::int64_t n_workers, Run run) {
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(n_workers));
    try {
        for (int worker = 1; worker < n_workers; ++worker) threads.emplace_back(run, worker);
    } catch (const std::exception&) {
    }
    run(0);
    for (auto& thread : threads) thread.join();
}

// Calls work(chunk, worker) for chunks 0 .. n_chunks in any order. The first failure in chunk order is thrown again
// here: chunks are taken in increasing order, so those before one that fails have all been begun.
template <class Work>
void in_chunks(std::int64_t n_chunks, int n_jobs, Work work) {
    if (n_jobs <= 1 || n_chunks <= 1) {
        for (std::int64_t chunk = 0; chunk < n_chunks; ++chunk) work(chunk, 0);
        return;
    }
    std::atomic<std::int64_t> next_chunk{0};
    std::atomic<bool> is_over{false};
    std::mutex mutex;
    std::exception_ptr failure;
    std::int64_t failed_chunk = n_chunks;
    on_threads(std::min<std::int64_t>(n_jobs, n_chunks), [&](int worker) {
        while (!is_over) {
            const std::int64_t chunk = next_chunk++;
            if (chunk >= n_chunks) return;
            try {
                work(chunk, worker);
            } catch (...) {
                is_over = true;
                std::lock_guard lock(mutex);
                if (chunk > failed_chunk) return;
                failed_chunk = chunk;
                failure = std::current_exception();
            }
        }
    });
    if (failure) std::rethrow_exception(failure);
}

// Like in_chunks, and then, for each chunk in increasing order, finish(chunk, worker) on the thread that did the work.
// The results of `finish` therefore never depend on n_jobs.
template <class Work, class Finish>
void in_ordered_chunks(std::int64_t n_chunks, int n_jobs, Work work, Finish finish) {
    if (n_jobs <= 1 || n_chunks <= 1) {
        for (std::int64_t chunk = 0; chunk < n_chunks; ++chunk) {
            work(chunk, 0);
            finish(chunk, 0);
        }
        return;
    }
    std::mutex mutex;
    std::condition_variable turn_changed;
    std::atomic<std::int64_t> next_chunk{0}, turn{0};
    std::exception_ptr failure;
    on_threads(std::min<std::int64_t>(n_jobs, n_chunks), [&](int worker) {
        for (;;) {
            const std::int64_t chunk = next_chunk++;
            if (chunk >= n_chunks) return;
            std::exception_ptr mine;
            try {
                work(chunk, worker);
            } catch (...) {
                mine = std::current_exception();
            }
            // The turn usually comes soon: sleeping and waking takes longer than testing a few more times.
            for (int look = 0; look < 2000 && turn != chunk; ++look) {
            }
            std::unique_lock lock(mutex);
            turn_changed.wait(lock, [&] { return turn == chunk || failure; });
            if (failure) return;
            lock.unlock();  // only the thread whose turn it is gets here
            if (!mine) {
                try {
                    finish(chunk, worker);
                } catch (...) {
                    mine = std::current_exception();
                }
            }
            lock.lock();
            if (mine) failure = mine;
            ++turn;
            turn_changed.notify_all();
            if (mine) return;
        }
    });
    if (failure) std::rethrow_exception(failure);
}

}  // namespace everytree
