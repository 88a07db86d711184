#pragma once
// Worker threads with a fixed partition of work: with equal numbers of threads, a thread always gets the same part.

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "lib/core/numbers/rounding.h"

namespace lamina::eigen {

/// A few threads that wait for work. One caller at a time; the caller works too, as part 0.
/// Threads start with the first run() and end with the pool.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);  ///< 0: all that the process may use (affinity mask, quotas of control groups)
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;  // workers hold its address
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  /// Calls work(part) once for every part in [0, threads), each on its own thread; returns when all have returned.
  /// An exception of any part is rethrown here. `work` is not copied, nothing is allocated.
  /// Throws UsageError, and runs nothing, while another call runs, in another thread or around this one.
  template <class Work>
  void run(Work&& work) {
    run_erased([](void* w, int part) { (*static_cast<std::remove_reference_t<Work>*>(w))(part); },
               const_cast<void*>(static_cast<const void*>(std::addressof(work))));
  }

  /// Splits [0, count) into one contiguous range per thread, in multiples of `grain` (the last may be smaller). Calls
  /// work(part, first, last) for the ranges that are not empty. The ranges depend on count, grain and threads alone.
  template <class Work>
  void split_parts(std::int64_t count, std::int64_t grain, Work&& work) {
    const std::int64_t blocks = divide_up(count, grain);
    if (blocks <= 1 || threads_ == 1) {
      if (count > 0) work(0, std::int64_t{0}, count);
      return;
    }
    run([&](int part) {
      const std::int64_t first = blocks * part / threads_ * grain;
      const std::int64_t last = blocks * (part + 1) / threads_ * grain;
      if (first < last) work(part, first, last < count ? last : count);
    });
  }

  /// Like split_parts(), but calls work(first, last).
  template <class Work>
  void split(std::int64_t count, std::int64_t grain, Work&& work) {
    split_parts(count, grain, [&](int, std::int64_t first, std::int64_t last) { work(first, last); });
  }

  /// Like split(), but calls work(i) for each i of a range, in order.
  template <class Work>
  void each(std::int64_t count, std::int64_t grain, Work&& work) {
    split(count, grain, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) work(i);
    });
  }

 private:
  using Erased = void (*)(void* work, int part);
  void run_erased(Erased call, void* work);
  struct Body;
  int threads_;
  std::atomic<bool> busy_{false};
  std::unique_ptr<Body> body_;
};

}  // namespace lamina::eigen
