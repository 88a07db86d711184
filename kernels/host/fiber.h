#pragma once
// Threads of execution that are switched by hand, each on a stack of its own with a guard page below.

#include <cstddef>
#include <memory>

namespace lamina::cuda_host::host {

/// A stack and a place on it. resume() runs it from where it stands until it calls suspend(). What it runs is
/// `body(context)`, which must never return: it suspends itself for good when there is nothing left to do.
class Fiber {
 public:
  Fiber(void (*body)(void*), void* context);  ///< throws std::bad_alloc where there is no memory for a stack
  ~Fiber();
  Fiber(const Fiber&) = delete;  // its own frames point into its stack
  Fiber& operator=(const Fiber&) = delete;

  void resume();   ///< from outside
  void suspend();  ///< from inside: back to whoever resumed it

 private:
  struct State;
  static void enter(unsigned low, unsigned high);
  std::unique_ptr<State> state_;
};

}  // namespace lamina::cuda_host::host
