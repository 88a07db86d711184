// The backend under test, and the reference backend.

#include "tests/support/backend.h"

#include "tests/support/catch.h"
#include "tests/support/skip.h"
#if defined(LAMINA_TEST_CLOSED)
#include "tests/support/closed_memory.h"
#endif

namespace lamina::test {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string tested_backend(const std::string& otherwise) {
  const std::string named = environment("LAMINA_TEST_BACKEND"), directory = environment("LAMINA_TEST_CUDNN");
  if (named.empty()) return otherwise;
  const bool takes_directory = named == "cudnn" || named == "cudnn-graph";
  return takes_directory && !directory.empty() ? named + ":" + directory : named;
}

std::shared_ptr<Backend> make_named(const std::string& name, const BackendOptions& options) {
  if (const std::string eigen = "eigen:"; name.starts_with(eigen)) {
    BackendOptions of_set = options;
    of_set.instruction_set = name.substr(eigen.size());
    try {
      return make_backend("eigen", of_set);
    } catch (const UsageError& error) {  // a build without AVX-512 lacks the twin sets
      if (!name.ends_with("-twin")) throw;
      throw Unsupported(error.what());
    }
  }
  if (name != "cuda-host-closed") return make_backend(name, options);
  auto inner = make_backend("cuda-host", options);
#if defined(LAMINA_TEST_CLOSED)
  return std::make_shared<ClosedBackend>(std::move(inner));
#else
  return inner;  // not reached: a build without cuda-host has thrown
#endif
}

std::shared_ptr<Backend> make_or_skip(const std::string& name, const BackendOptions& options) {
  try {
    auto backend = make_named(name, options);
    if (const std::string reason = backend->available(); !reason.empty()) skip_without_gpu(name + ": " + reason);
    return backend;
  } catch (const Unsupported& error) {
    skip_without_gpu(name + ": " + error.what());
  }
}

std::vector<std::shared_ptr<Backend>> tested_backends() {
  if (const std::string named = tested_backend(""); !named.empty()) return {make_or_skip(named)};
#if defined(LAMINA_TEST_CLOSED)
  return {make_or_skip("eigen"), make_or_skip("cuda-host-closed")};
#else
  return {make_or_skip("eigen")};
#endif
}

// These backends are never destroyed. A backend would outlive statics of libraries that it opens later, such as cuBLAS.

Backend& backend() {
  static const auto& made = *new std::shared_ptr<Backend>(make_or_skip(tested_backend("eigen"), {.threads = 2}));
  return *made;
}

Backend& one_thread() {
  static const auto& made = *new std::shared_ptr<Backend>(make_or_skip(tested_backend("eigen"), {.threads = 1}));
  return *made;
}

Backend& oracle() {
  static const auto& made = *new std::shared_ptr<Backend>(make_backend("eigen", {.threads = 1}));
  return *made;
}

Choice direct() { return {.algorithm = {"direct", "direct", "direct"}}; }

bool decided_by_library() { return backend().name().starts_with("cudnn"); }

bool is_unbounded(const std::string& algorithm) {
  return decided_by_library() && (algorithm.starts_with("fft") || algorithm.starts_with("winograd"));
}

bool refused(const Spec& spec) {
  return throws<Unsupported>([&] { backend().lower(spec, {}); });
}

bool refused(const Graph& graph, const Options& options) {
  return throws<Unsupported>([&] { predict_memory(graph, backend(), options); });
}

std::vector<std::string> algorithms(const Spec& spec, Pass pass) {
  std::vector<std::string> names = backend().algorithms(spec, pass);
  if (!decided_by_library()) return names;
  std::erase_if(names, [&](const std::string& name) {
    Choice choice;
    choice.algorithm[static_cast<std::size_t>(pass)] = name;
    return is_unbounded(name) || throws<Unsupported>([&] { backend().lower(spec, choice); });
  });
  return names;
}

std::vector<DType> element_types() { return {DType::f64, DType::f32}; }

std::vector<DType> half_types() {
  if (backend().name().starts_with("cudnn")) return {};
  return {DType::f16, DType::bf16};
}

}  // namespace lamina::test
