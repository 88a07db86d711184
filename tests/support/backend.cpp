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

bool decided_by_library() { return backend().name().starts_with("cudnn"); }

bool is_unbounded(const std::string& algorithm) {
  return decided_by_library() && (algorithm.starts_with("fft") || algorithm.starts_with("winograd"));
}

bool refused(const Spec& spec) {
  try {
    backend().lower(spec, {});
    return false;
  } catch (const Unsupported&) {
    return true;
  }
}

std::vector<std::string> algorithms(const Spec& spec, Pass pass) {
  std::vector<std::string> names = backend().algorithms(spec, pass);
  if (!decided_by_library()) return names;
  std::erase_if(names, [&](const std::string& name) {
    if (is_unbounded(name)) return true;
    Choice choice;
    choice.algorithm[static_cast<std::size_t>(pass)] = name;
    try {
      backend().lower(spec, choice);
      return false;
    } catch (const Unsupported&) {
      return true;
    }
  });
  return names;
}

std::vector<DType> element_types() { return {DType::f64, DType::f32}; }

}  // namespace lamina::test
