// Threads over fixed chunks of rows. Created per call, so that nothing is left over for a fork to trip on.
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

// Calls work(chunk, worker) for chunks 0 .. n_chunks in any order and then, for each chunk in increasing
// order, finish(chunk, worker) on the thread that did the work. What `finish` computes therefore never
// depends on n_jobs. The first failure in chunk order stops everything and is thrown again here.
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
    std::atomic<std::int64_t> next_chunk{0};
    std::int64_t turn = 0;
    std::exception_ptr failure;

    const auto run = [&](int worker) {
        for (;;) {
            const std::int64_t chunk = next_chunk++;
            if (chunk >= n_chunks) return;
            std::exception_ptr mine;
            try {
                work(chunk, worker);
            } catch (...) {
                mine = std::current_exception();
            }
            std::unique_lock lock(mutex);
            turn_changed.wait(lock, [&] { return turn == chunk || failure; });
            if (failure) return;
            lock.unlock();  // only the thread whose turn it is comes past here
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
    };
    const int n_workers = static_cast<int>(std::min<std::int64_t>(n_jobs, n_chunks));
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(n_workers));
    // A machine that grants fewer threads only makes this slower: the calling thread works in any case.
    try {
        for (int worker = 1; worker < n_workers; ++worker) threads.emplace_back(run, worker);
    } catch (const std::exception&) {
    }
    run(0);
    for (auto& thread : threads) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace everytree
