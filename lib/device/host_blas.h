#pragma once
// A stand-in for cuBLAS that computes on the host, with plain loops: for the backend cuda-host, and for tests.

#include "blas.h"

namespace lamina {

/// Every entry behaves as cuBLAS's does, matrices by columns, but works while it is called; streams, workspaces and
/// math modes are taken and make no difference. Each element is one sum in rising order of k, in the type of its
/// factors.
const BlasTable& host_blas();

}  // namespace lamina
