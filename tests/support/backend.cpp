// The backend that this process tests, and the one it is tested against.

#include "support/backend.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "lamina/error.h"

namespace lamina::test {
namespace {

constexpr int skipped = 77;  // as told to ctest by SKIP_RETURN_CODE

[[noreturn]] void skip(const std::string& name, const std::string& reason) {
  std::printf("skipped: %s: %s\n", name.c_str(), reason.c_str());
  std::fflush(stdout);
  std::_Exit(skipped);
}

std::unique_ptr<Backend> make_or_skip(int threads) {
  const char* asked = std::getenv("LAMINA_TEST_BACKEND");
  const std::string name = asked == nullptr ? "eigen" : asked;
  try {
    auto backend = make_backend(name, {.threads = threads});
    if (const std::string reason = backend->available(); !reason.empty()) skip(name, reason);
    return backend;
  } catch (const Unsupported& error) {
    skip(name, error.what());
  }
}

}  // namespace

Backend& backend() {
  static const std::unique_ptr<Backend> made = make_or_skip(2);
  return *made;
}

Backend& one_thread() {
  static const std::unique_ptr<Backend> made = make_or_skip(1);
  return *made;
}

Backend& oracle() {
  static const std::unique_ptr<Backend> made = make_backend("eigen", {.threads = 1});
  return *made;
}

Choice direct() { return {.algorithm = {"direct", "direct", "direct"}}; }

std::vector<DType> element_types() { return {DType::f64, DType::f32}; }

}  // namespace lamina::test
