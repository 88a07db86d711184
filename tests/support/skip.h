#pragma once
// Skips a test that this machine cannot run: ctest reports it as skipped, or as failed if a GPU is expected.

#include <cstdio>
#include <cstdlib>
#include <string>

namespace lamina::test {

/// Ends the process with this status, by default ctest's SKIP_RETURN_CODE.
[[noreturn]] inline void skip(const std::string& reason, const char* word = "skipped", int status = 77) {
  std::printf("%s: %s\n", word, reason.c_str());
  std::fflush(stdout);
  std::_Exit(status);
}

/// Ends the process for a test that needs a GPU or cuDNN: as skipped, or as failed if LAMINA_EXPECT_GPU says that this
/// machine has both: it is set, and neither empty nor 0.
[[noreturn]] inline void skip_without_gpu(const std::string& reason) {
  const char* const said = std::getenv("LAMINA_EXPECT_GPU");
  if (const std::string expected = said == nullptr ? "" : said; !expected.empty() && expected != "0")
    skip("LAMINA_EXPECT_GPU is set, and this test cannot run: " + reason, "failed", 1);
  skip(reason);
}

}  // namespace lamina::test
