#pragma once
// What the multiply-add units of a GPU reach.

#include "lamina/shape.h"

namespace lamina {

class CudaDevice;

/// Operations per second of multiply-adds whose operands stay in registers, on every multiprocessor, their result
/// compared with the host's: what Backend::peak_flops promises. Takes less than a second. Throws Unsupported for a type
/// other than f32 and f64, DeviceError, OutOfMemory.
double cuda_peak_flops(CudaDevice&, DType);

}  // namespace lamina
