#pragma once
// Skips a test that this machine cannot run. ctest reports the test as skipped, or as failed if a GPU is expected.

#include <cstdio>
#include <cstdlib>
#include <string>

namespace lamina::test {

/// Prints the reason and ends the process with this status, by default ctest's SKIP_RETURN_CODE.
[[noreturn]] inline void skip(const std::string& reason, const char* word = "skipped", int status = 77) {
  std::printf("%s: %s\n", word, reason.c_str());
  std::fflush(stdout);
  std::_Exit(status);
}

/// Ends the process of a test that needs a GPU or cuDNN. The test is skipped, but fails if LAMINA_EXPECT_GPU (set, not
/// empty and not 0) says that this machine has both.
[[noreturn]] inline void skip_without_gpu(const std::string& reason) {
  const char* const said = std::getenv("LAMINA_EXPECT_GPU");
  if (const std::string expected = said == nullptr ? "" : said; !expected.empty() && expected != "0")
    skip("LAMINA_EXPECT_GPU is set, and this test cannot run: " + reason, "failed", 1);
  skip(reason);
}

}  // namespace lamina::test
