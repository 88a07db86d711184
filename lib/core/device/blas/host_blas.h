#pragma once
// A substitute for cuBLAS that computes on the host, with plain loops: for the backend cuda-host, and for tests.

#include "blas.h"

namespace lamina {

/// Every entry behaves as cuBLAS's does, with column-major matrices, but does its work during the call. Streams,
/// workspaces and math modes are accepted and have no effect. Each element is one sum in rising order of k, in the type
/// of its factors.
const BlasTable& host_blas();

}  // namespace lamina
