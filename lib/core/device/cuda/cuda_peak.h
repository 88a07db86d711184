#pragma once
// The measured peak of a GPU's multiply-add units.

#include "lamina/shape.h"

namespace lamina {

class CudaDevice;

/// Operations per second of multiply-adds whose operands stay in registers, on every multiprocessor. The result is
/// compared with the host's. For Backend::peak_flops_per_second. Takes less than a second. Throws Unsupported for a
/// type other than f32 and f64, DeviceError, OutOfMemory.
double cuda_peak_flops_per_second(CudaDevice&, DType);

}  // namespace lamina
