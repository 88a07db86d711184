// Delay: one thread that looks at the clock of its multiprocessor until the cycles have gone by.
//
// A clock that jumps back, as where the thread is moved to another multiprocessor, must not make it wait for ever: a
// look takes more than a cycle, so that the count of looks ends the loop as well.

#include "delay.h"

#include "../common/launch.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

__global__ void delay_kernel(std::int64_t cycles) {
  const std::int64_t start = clock64();
  for (std::int64_t looks = 0; looks < cycles; ++looks)
    if (clock64() - start >= cycles) return;
}

}  // namespace

void delay(Stream stream, std::int64_t cycles) {
  if (cycles > 0) launch(LAMINA_KERNEL(delay_kernel), 1, 1, 0, stream, cycles);
}

}  // namespace lamina::LAMINA_CUDA_SPACE
