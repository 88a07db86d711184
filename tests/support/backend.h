#pragma once
// The backend that this process tests, and the one it is tested against.

#include <vector>

#include "lamina/backend.h"

namespace lamina::test {

/// LAMINA_TEST_BACKEND names it; "eigen" where that is unset. One process tests one backend, so that ctest runs the
/// same binary once per backend. Where the backend cannot run, the process says why and ends with status 77: skipped.
Backend& backend();

/// The same on one thread: for differences, thousands of passes so small that handing work out would be all they do.
Backend& one_thread();

/// Eigen, which in f64 by its `direct` algorithms is the oracle: hand examples and differences pin it.
Backend& oracle();

/// The algorithm `direct` for all passes.
Choice direct();

/// The element types that every backend computes in.
std::vector<DType> element_types();

}  // namespace lamina::test
