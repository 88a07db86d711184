#pragma once
// Skips a test that this machine cannot run: ctest reports it as skipped. If a GPU is expected, that is a failure.

#include <cstdio>
#include <cstdlib>
#include <string>

namespace lamina::test {

/// Whether LAMINA_EXPECT_GPU says that this machine has a GPU and a cuDNN: set, and neither empty nor 0.
inline bool gpu_is_expected() {
  const char* const expected = std::getenv("LAMINA_EXPECT_GPU");
  return expected != nullptr && std::string(expected) != "" && std::string(expected) != "0";
}

/// Ends the process for a test that needs a GPU or cuDNN: with status 77, ctest's SKIP_RETURN_CODE, or with
/// status 1 if these are expected.
[[noreturn]] inline void skip_without_gpu(const std::string& reason) {
  constexpr int failed = 1, skipped = 77;
  if (gpu_is_expected())
    std::printf("failed: LAMINA_EXPECT_GPU is set, and this test cannot run: %s\n", reason.c_str());
  else
    std::printf("skipped: %s\n", reason.c_str());
  std::fflush(stdout);
  std::_Exit(gpu_is_expected() ? failed : skipped);
}

}  // namespace lamina::test
