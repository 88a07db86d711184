#pragma once
// Threads of execution that are switched explicitly, each on its own stack with a guard page below.

#include <cstddef>
#include <memory>

namespace lamina::cuda_host::host {

/// A stack and a position in its code. resume() continues there until the fiber calls suspend(). A fiber runs
/// `body(context)`, which must never return: when there is nothing left to do, it suspends.
class Fiber {
 public:
  Fiber(void (*body)(void*), void* context);  ///< throws std::bad_alloc without memory for a stack
  ~Fiber();
  Fiber(const Fiber&) = delete;  // its frames point into its stack
  Fiber& operator=(const Fiber&) = delete;

  void resume();   ///< called from outside
  void suspend();  ///< called from inside; returns to the caller of resume()

 private:
  struct State;
  static void enter(unsigned low, unsigned high);
  std::unique_ptr<State> state_;
};

}  // namespace lamina::cuda_host::host
