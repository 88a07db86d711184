// The plans of a pack (bench/gpu/pack) run on the device. LAMINA_TEST_PLANS is their folder.

#include "tests/cudnn/carried_plans.h"

#include <cstdio>

#include "lamina/error.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

using namespace lamina;

TEST_CASE("every plan of a pack is loaded and runs on the device") {
  const char *const folder = std::getenv("LAMINA_TEST_PLANS"), *const cudnn = std::getenv("LAMINA_TEST_CUDNN");
  if (folder == nullptr || !std::filesystem::is_directory(folder)) test::skip("LAMINA_TEST_PLANS names no folder");
  const auto machine = [] {
    try {
      return cudnn::make_cuda_machine({});
    } catch (const Unsupported& error) {
      test::skip_without_gpu(error.what());
    }
  };
  const std::string directory = cudnn == nullptr ? "" : cudnn;
  cudnn::Session session(machine(), [&]() -> const cudnn::Api& { return cudnn::process_library(directory); });
  if (!session.has_device()) test::skip_without_gpu(session.machine().unavailable());
  const std::vector<std::string> lines = test::run_carried_plans(session, folder);
  for (const std::string& line : lines) {
    std::printf("%s\n", line.c_str());
    CHECK(line.ends_with(": yes"));
  }
  CHECK_FALSE(lines.empty());
}
