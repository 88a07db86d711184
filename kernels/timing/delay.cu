// Delay: one thread polls the clock of its multiprocessor until the cycles have passed.
//
// If the thread is moved to another multiprocessor, the clock jumps back, and the thread must still end. A poll takes
// more than a cycle, so the number of polls also ends the loop.

#include "delay.h"

#include "kernels/common/launch.h"

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
