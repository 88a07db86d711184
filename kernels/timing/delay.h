#pragma once
// A delay on the device's queue.

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Keeps the queue busy for `cycles` of the device's clock (on the host: nanoseconds). It ends by itself,
/// whatever the host does. Enqueues; does not wait.
void delay(Stream, std::int64_t cycles);

}  // namespace lamina::LAMINA_CUDA_SPACE
