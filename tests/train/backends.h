#pragma once
// The backends that train in the default tests: the processor's, and our kernels on memory that the host cannot touch.

#include <cstdlib>
#include <string>
#include <vector>

namespace lamina::test {

/// The backend of LAMINA_TEST_BACKEND, or all that run on every machine.
inline std::vector<std::string> training_backends() {
  if (const char* one = std::getenv("LAMINA_TEST_BACKEND"); one != nullptr) return {one};
#ifdef LAMINA_TEST_CLOSED
  return {"eigen", "cuda-host-closed"};
#else
  return {"eigen"};
#endif
}

}  // namespace lamina::test
