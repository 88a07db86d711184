#pragma once
// A grid of blocks run on the host. Blocks run one after another, and each thread of a block is a fiber. Threads meet
// at barriers and warp primitives. Misuse that makes a GPU hang, or that a GPU does not report, is an error that names
// the thread.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <type_traits>

#include "kernels/types/stream.h"

namespace lamina::cuda_host {

struct dim3 {  // NOLINT(readability-identifier-naming): CUDA's words, here and below
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}  // NOLINT
};
struct uint3 {  // NOLINT
  unsigned x, y, z;
};

// The indices of the thread that runs.
inline uint3 threadIdx{}, blockIdx{};  // NOLINT
inline dim3 blockDim, gridDim;         // NOLINT
constexpr int warpSize = 32;           // NOLINT

namespace host {

/// The order in which the blocks of a grid run and in which the threads of a block take turns, at the start and after
/// every barrier. A correct kernel gives the same bits in every order.
enum class Order { ascending, descending, shuffled };

/// Sets the order for all later launches. Until the first call, LAMINA_THREAD_ORDER decides: "ascending", "descending",
/// "shuffled" or "shuffled:<seed>"; unset: ascending.
void set_thread_order(Order, std::uint64_t seed = 0);

/// Launches so far, by the kernel's name without its template arguments.
std::map<std::string, std::uint64_t> kernels_run();

/// The addresses of the kernels launched so far: each set of template arguments is a kernel of its own.
std::set<const void*> instances_run();

struct Launch {
  const char* name;
  const void* kernel;
  dim3 grid, block;
  std::size_t shared_bytes;
};

/// Runs `thread(context)` for every thread of the grid. One launch at a time per process; others wait.
/// Throws LaunchError for a shape that no GPU accepts, misuse of barriers or warp primitives, a write beyond dynamic
/// shared memory, and an exception in the kernel. The kernel's other threads are then unwound.
void run_grid(const Launch&, void (*thread)(void*), void* context);

// Called by kernels, through the words of cuda_on_host.h.

unsigned char* dynamic_shared();

inline std::uint64_t blocks_begun = 0;  ///< number of blocks begun by all launches so far

/// Fills an object in static shared memory with 0xff bytes (NaN) at the first use in a block: the values of an earlier
/// block are erased before a thread can read them.
template <class T>
void begin_shared(T& object, std::uint64_t& block) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_default_constructible_v<T>,
                "shared memory holds plain data: nothing constructs it");
  if (block == blocks_begun) return;
  block = blocks_begun;
  std::memset(static_cast<void*>(&object), 0xff, sizeof object);
}

/// Waits for every thread of the block. Returns the sum of their `value`.
int sync_block(const char* file, int line, int value = 0);

enum class WarpPrimitive { sync, shuffle, shuffle_up, shuffle_down, shuffle_xor, ballot };

/// Waits for every lane of `mask`, which must contain the caller. In a shuffle, `bits` is the caller's value, and the
/// result is the source lane's value. In a ballot, bit l of the result is whether lane l's `bits` are not 0.
std::uint64_t meet_warp(WarpPrimitive, unsigned mask, std::uint64_t bits, int operand, int width);

}  // namespace host
}  // namespace lamina::cuda_host
