// Worker threads that wait awake for a moment and then sleep, so that the calls of a pass follow each other at once and
// an idle backend costs nothing.

#include "pool.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "cpu_affinity.h"
#include "lamina/backend.h"
#include "lamina/error.h"
#include "lib/core/system/busy_guard.h"
#include "lib/core/system/usable_threads.h"

namespace lamina::eigen {
namespace {

// A virtual machine gives away a processor that sleeps, and takes 50 us and more to give it back: one image of
// mobilenet_v2 after a pause takes 10 ms with awake_time, 20 ms without (two processors, an EPYC of Zen 3).
constexpr auto spin_time = std::chrono::microseconds(30);  // without a system call
constexpr auto awake_time = std::chrono::milliseconds(1);  // spin_time, and then with the processor offered to others

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits until `ready()`, but at most for awake_time. Returns whether it is ready.
template <class Ready>
bool wait_awake(Ready&& ready) {
  if (ready()) return true;
  const auto begin = std::chrono::steady_clock::now();
  auto waited = std::chrono::steady_clock::duration::zero();
  do {
    for (int i = 0; i < 16; ++i) {
      relax();
      if (ready()) return true;
    }
    if (waited > spin_time) std::this_thread::yield();
    waited = std::chrono::steady_clock::now() - begin;
  } while (waited < awake_time);
  return false;
}

int checked(int threads) {
  if (threads < 0 || threads > most_backend_threads)
    throw UsageError("eigen: threads is " + std::to_string(threads) + "; give 1 to " +
                     std::to_string(most_backend_threads) + ", or 0 for every core this process may use");
  return threads == 0 ? usable_threads() : threads;
}

}  // namespace

struct ThreadPool::Body {
  std::mutex mutex;
  std::condition_variable wake, done;
  std::atomic<std::uint64_t> round{0};  // number of a round; written under the mutex, so no sleeper misses it
  std::atomic<int> pending{0};          // workers that have not finished this round
  bool stop = false;                    // published by `round`
  Erased call = nullptr;
  void* work = nullptr;
  std::vector<std::exception_ptr> errors;  // one per part
  std::vector<std::thread> workers;
  CpuAffinity affinity;  // published by `round`
  std::chrono::steady_clock::time_point last_end;

  void run_part(int part) noexcept {
    try {
      call(work, part);
    } catch (...) {
      errors[static_cast<std::size_t>(part)] = std::current_exception();
    }
  }

  void next_round() {
    {
      const std::lock_guard lock(mutex);
      round.fetch_add(1, std::memory_order_release);
    }
    wake.notify_all();
  }

  void serve(int part) {
    for (std::uint64_t seen = 0;;) {
      const auto changed = [&] { return round.load(std::memory_order_acquire) != seen; };
      if (!wait_awake(changed)) {
        std::unique_lock lock(mutex);
        wake.wait(lock, changed);
      }
      ++seen;
      if (stop) return;
      affinity.release(static_cast<std::size_t>(part) - 1);
      run_part(part);
      if (pending.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        const std::lock_guard lock(mutex);
        done.notify_one();
      }
    }
  }

  void start(int threads) {
    errors.resize(static_cast<std::size_t>(threads));
    affinity.start(static_cast<std::size_t>(threads) - 1);
    workers.reserve(static_cast<std::size_t>(threads) - 1);
    try {
      for (int part = 1; part < threads; ++part) workers.emplace_back([this, part] { serve(part); });
    } catch (const std::system_error& error) {
      end();
      throw DeviceError("eigen: cannot start " + std::to_string(threads) + " threads: " + error.what());
    }
  }

  void end() {
    stop = true;
    next_round();
    for (std::thread& worker : workers) worker.join();
    workers.clear();
    stop = false;
    round.store(0, std::memory_order_relaxed);
  }
};

ThreadPool::ThreadPool(int threads) : threads_(checked(threads)), body_(std::make_unique<Body>()) {}

ThreadPool::~ThreadPool() {
  if (!body_->workers.empty()) body_->end();
}

void ThreadPool::run_erased(Erased call, void* work) {
  const BusyGuard turn(
      busy_,
      "the threads of this eigen backend already run another plan; run the plans of one backend one after the "
      "other, or make a backend for each of your threads");
  if (threads_ == 1) {
    call(work, 0);
    return;
  }
  Body& body = *body_;
  if (body.workers.empty()) body.start(threads_);
  body.call = call;
  body.work = work;
  body.pending.store(threads_ - 1, std::memory_order_relaxed);
  if (std::chrono::steady_clock::now() - body.last_end > awake_time) body.affinity.bind(body.workers);
  body.next_round();
  body.run_part(0);

  const auto finished = [&] { return body.pending.load(std::memory_order_acquire) == 0; };
  if (!wait_awake(finished)) {
    std::unique_lock lock(body.mutex);
    body.done.wait(lock, finished);
  }
  body.last_end = std::chrono::steady_clock::now();
  std::exception_ptr first;
  for (std::exception_ptr& error : body.errors) {
    if (error && !first) first = error;
    error = nullptr;
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace lamina::eigen
