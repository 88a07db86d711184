// Fibers: entered by ucontext, then switched by the compiler's own jumps, a few instructions each. AddressSanitizer is
// told of each switch, and the jumps are hidden from it: it would treat a jump as the end of all frames on the stack.

#include "fiber.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#define LAMINA_ASAN_FIBERS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LAMINA_ASAN_FIBERS 1
#endif
#endif
#if defined(LAMINA_ASAN_FIBERS)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace lamina::cuda_host::host {
namespace {

// A kernel's frames are small. Only the sanitizers make them large, by redzones around each variable.
#if defined(LAMINA_ASAN_FIBERS)
constexpr std::size_t stack_bytes = 512 * 1024;
#else
constexpr std::size_t stack_bytes = 128 * 1024;
#endif

using Place = void* [5];

#if defined(LAMINA_ASAN_FIBERS)
__attribute__((no_sanitize_address))
#endif
__attribute__((noinline, noreturn)) void
jump(Place& place) {
  __builtin_longjmp(place, 1);
}

/// Memory for a stack, unreadable at its lower end.
class Stack {
 public:
  Stack() : guard_bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    void* const memory =
        mmap(nullptr, guard_bytes_ + stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    memory_ = static_cast<char*>(memory);
    mprotect(memory_, guard_bytes_, PROT_NONE);
  }
  ~Stack() {
#if defined(LAMINA_ASAN_FIBERS)
    // Frames that were left without returning have poisoned this memory, and the system may hand it out next.
    ASAN_UNPOISON_MEMORY_REGION(bottom(), stack_bytes);
#endif
    munmap(memory_, guard_bytes_ + stack_bytes);
  }
  Stack(const Stack&) = delete;  // owns its pages
  Stack& operator=(const Stack&) = delete;
  void* bottom() const { return memory_ + guard_bytes_; }

 private:
  std::size_t guard_bytes_;
  char* memory_ = nullptr;
};

}  // namespace

struct Fiber::State {
  void (*body)(void*) = nullptr;
  void* context = nullptr;
  Fiber* owner = nullptr;
  Stack stack;
  ucontext_t inside{};
  Place at{}, back{};
  bool started = false;
#if defined(LAMINA_ASAN_FIBERS)
  void *fake_inside = nullptr, *fake_outside = nullptr;
  const void* outside_bottom = nullptr;
  std::size_t outside_size = 0;
#endif
};

void Fiber::enter(unsigned low, unsigned high) {
  // makecontext passes only ints.
  auto* const state =
      reinterpret_cast<State*>(static_cast<std::uintptr_t>(low) | static_cast<std::uintptr_t>(high) << 32);
#if defined(LAMINA_ASAN_FIBERS)
  __sanitizer_finish_switch_fiber(nullptr, &state->outside_bottom, &state->outside_size);
#endif
  state->body(state->context);
}

Fiber::Fiber(void (*body)(void*), void* context) : state_(std::make_unique<State>()) {
  state_->body = body;
  state_->context = context;
  state_->owner = this;
  getcontext(&state_->inside);
  state_->inside.uc_stack.ss_sp = state_->stack.bottom();
  state_->inside.uc_stack.ss_size = stack_bytes;
  state_->inside.uc_link = nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(state_.get());
  makecontext(&state_->inside, reinterpret_cast<void (*)()>(&Fiber::enter), 2, static_cast<unsigned>(address),
              static_cast<unsigned>(address >> 32));
}

Fiber::~Fiber() = default;

#if defined(LAMINA_ASAN_FIBERS)
__attribute__((no_sanitize_address))
#endif
void Fiber::resume() {
#if defined(LAMINA_ASAN_FIBERS)
  __sanitizer_start_switch_fiber(&state_->fake_outside, state_->stack.bottom(), stack_bytes);
#endif
  if (__builtin_setjmp(state_->back) == 0) {
    if (state_->started) jump(state_->at);
    state_->started = true;
    setcontext(&state_->inside);
  }
#if defined(LAMINA_ASAN_FIBERS)
  __sanitizer_finish_switch_fiber(state_->fake_outside, nullptr, nullptr);
#endif
}

#if defined(LAMINA_ASAN_FIBERS)
__attribute__((no_sanitize_address))
#endif
void Fiber::suspend() {
#if defined(LAMINA_ASAN_FIBERS)
  __sanitizer_start_switch_fiber(&state_->fake_inside, state_->outside_bottom, state_->outside_size);
#endif
  if (__builtin_setjmp(state_->at) == 0) jump(state_->back);
#if defined(LAMINA_ASAN_FIBERS)
  __sanitizer_finish_switch_fiber(state_->fake_inside, &state_->outside_bottom, &state_->outside_size);
#endif
}

}  // namespace lamina::cuda_host::host
