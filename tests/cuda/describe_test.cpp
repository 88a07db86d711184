// The description of the backend cuda, with fake cuBLAS libraries.

#include <dlfcn.h>

#include "lamina/plan.h"
#include "tests/support/catch.h"
#include "tests/support/environment.h"

using namespace lamina;
using Catch::Matchers::EndsWith;

namespace {

/// An open library. The loader finds an open library by its name before it looks for an installed one.
struct Opened {
  void* file;
  explicit Opened(const std::string& path) : file(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    INFO(path);
    REQUIRE(file != nullptr);
  }
  ~Opened() { dlclose(file); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
};

}  // namespace

TEST_CASE("the backend cuda's description has the version of cuBLAS, or in the same line why there is no cuBLAS") {
  // The backend looks for cuBLAS 13 before 12, so cuBLAS 12 is tested first: an opened library stays open.
  const Opened lacking(LAMINA_FAKES "/lacking/libcublas.so.12");
  const std::string without = make_backend("cuda")->describe();
  CHECK_THAT(without, ContainsSubstring("CUDA runtime ") && ContainsSubstring(", without cuBLAS: ") &&
                          ContainsSubstring("libcublas.so.12") && ContainsSubstring("cublasDestroy_v2"));
  CHECK(without.find('\n') == std::string::npos);

  const Opened whole(LAMINA_FAKES "/whole/libcublas.so.13");
  const auto backend = make_backend("cuda");
  CHECK_THAT(backend->describe(), ContainsSubstring("CUDA runtime ") && EndsWith(", cuBLAS 12.9.7"));
  CHECK(backend->describe() == backend->describe());

  // An environment variable that changes cuBLAS's products is reported, and refused if strict math is requested.
  Graph graph("one");
  conv(graph.input({1, 2, 5, 5}), "conv", {.channels = 2, .kernel = 3});
  Options options{.mode = Mode::inference};
  options.choice.algorithm[0] = "im2col_gemm";
  for (const char* const name : {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION"}) {
    const test::Variable override(name, "1");
    CHECK_THAT(backend->describe(), EndsWith(std::string(", environment ") + name + "=1"));
    CHECK_THROWS_MATCHES(predict_memory(graph, *backend, options), UsageError, Says(name));
    CHECK_NOTHROW(predict_memory(graph, *backend, {.mode = Mode::inference}));  // by our own kernels, without cuBLAS
  }
}
