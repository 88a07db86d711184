// Which algorithm of a convolution a Choice takes, on a fake cuDNN with set answers.

#include "tests/cudnn/bound.h"
#include "tests/support/catch.h"
#include "tests/support/environment.h"

using namespace lamina::test;

namespace {

const Case plain_case = {"", Conv{.channels = 4, .kernel = 3}, {{1, 2, 5, 5}}};

std::string forward_of(FakeBackend& on, const Choice& choice, DType dtype = DType::f32) {
  return taken(on, spec_of(on, plain_case, {.dtype = dtype}), choice).at(0);
}

/// The math type that was set last in the forward descriptor.
std::string math_of(FakeBackend& on, const Choice& choice, DType dtype = DType::f32) {
  BoundUnit unit(on, spec_of(on, plain_case, {.dtype = dtype}), choice);
  const std::string call = unit.run(Pass::forward).at(0);
  const std::size_t at = call.find("ConvolutionMathType ");
  REQUIRE(at != std::string::npos);
  return call.substr(at + 20, 1);
}

}  // namespace

TEST_CASE("cudnn: every algorithm of every pass has the right name and number") {
  FakeBackend on;
  const Spec spec = spec_of(on, plain_case);
  const std::vector<std::string> forward = {
      "implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling", "winograd", "winograd_nonfused"};
  CHECK(on.backend.algorithms(spec, Pass::forward) == forward);
  CHECK(on.backend.algorithms(spec, Pass::backward_data) ==
        std::vector<std::string>{"algo_0", "algo_1", "fft", "fft_tiling", "winograd", "winograd_nonfused"});
  CHECK(on.backend.algorithms(spec, Pass::backward_params) ==
        std::vector<std::string>{"algo_0", "algo_1", "fft", "algo_3", "winograd_nonfused", "fft_tiling"});
  for (std::size_t i = 0; i < forward.size(); ++i) {
    BoundUnit unit(on, spec, {.algorithm = {forward[i], "", ""}});
    CHECK(unit.lowered.steps[0].algorithm == forward[i]);
    CHECK(unit.lowered.steps[0].kernel->workspace_bytes() == 100 * (i + 1));
    CHECK(unit.run(Pass::forward)[0].find(", " + std::to_string(i) + ", workspace") != std::string::npos);
  }
  BoundUnit unit(on, spec, {.algorithm = {"", "fft_tiling", ""}});
  CHECK(unit.run(Pass::backward_params)[0].find(", 6, workspace, 700") != std::string::npos);
}

TEST_CASE("cudnn: without a name, the first of the library's proposals within the workspace limit is taken") {
  FakeBackend on;
  on.fake.answers[Pass::forward] = {result(6), result(1), result(0)};
  on.fake.workspace = {{6, 5000}, {1, 1000}, {0, 0}};
  CHECK(forward_of(on, {}) == "winograd");
  CHECK(forward_of(on, {.workspace_limit = 4999}) == "implicit_precomp_gemm");
  CHECK(forward_of(on, {.workspace_limit = 0}) == "implicit_gemm");
  on.fake.workspace[0] = 10;
  CHECK_THROWS_MATCHES(
      forward_of(on, {.workspace_limit = 9}), Unsupported,
      Says("winograd needs 5000 bytes of workspace, the limit is 9", "implicit_gemm needs 10", "forward"));
}

TEST_CASE("cudnn: proposals that the library then refuses are skipped, by the status numbers of its version") {
  for (const auto& [version, refusal] : {std::pair{7605, 9}, {8907, 9}, {91900, 3003}}) {
    FakeBackend on(static_cast<std::size_t>(version));
    const int math = version < 8000 ? 0 : 3;
    on.fake.answers[Pass::forward] = {result(4, 0, math, 1, refusal), result(5, 0, math), result(2, 0, math)};
    on.fake.workspace_status[5] = refusal;
    CHECK(forward_of(on, {}) == "gemm");
    on.fake.workspace_status[2] = refusal;
    CHECK_THROWS_MATCHES(forward_of(on, {}), Unsupported, Says("fft: ", "(" + std::to_string(refusal) + ")"));
  }
  FakeBackend empty;
  empty.fake.answers[Pass::forward] = {result(77)};
  CHECK_THROWS_WITH(forward_of(empty, {}), ContainsSubstring("offers no algorithm"));
}

TEST_CASE("cudnn: a failed query for the workspace is an error, not a refusal") {
  FakeBackend on;
  on.fake.workspace_status[0] = 5000;
  CHECK_THROWS_AS(forward_of(on, {}), DeviceError);
}

TEST_CASE("cudnn: a demand for determinism excludes algorithms that the manual or the library calls nondeterministic") {
  FakeBackend on;
  const Spec spec = spec_of(on, plain_case);
  CHECK(taken(on, spec)[1] == "algo_0");
  CHECK(taken(on, spec, {.deterministic = true})[1] == "algo_1");
  CHECK_THROWS_WITH(on.backend.lower(spec, {.algorithm = {"", "algo_3", ""}, .deterministic = true}),
                    ContainsSubstring("algo_3 may give other bits on another run"));
  on.fake.answers[Pass::forward] = {result(1, 0, 3, cudnn::determinism::none), result(0)};
  CHECK(forward_of(on, {}) == "implicit_precomp_gemm");
  CHECK(forward_of(on, {.deterministic = true}) == "implicit_gemm");
}

TEST_CASE("cudnn: a step declares the determinism and the math of its algorithm") {
  FakeBackend on;
  const Spec spec = spec_of(on, plain_case);
  const auto step = [&](std::size_t pass, const Choice& choice) {
    return on.backend.lower(spec, choice).steps.at(pass);
  };
  CHECK(step(0, {}).deterministic);
  CHECK_FALSE(step(1, {}).deterministic);  // the manual calls algo_0 nondeterministic
  CHECK_FALSE(step(2, {}).deterministic);
  CHECK_FALSE(step(1, {.algorithm = {"", "algo_3", ""}}).deterministic);
  CHECK(step(1, {.algorithm = {"", "algo_1", ""}}).deterministic);
  CHECK(step(2, {.deterministic = true}).deterministic);
  CHECK(step(0, {}).math == Math::strict);
  CHECK(step(0, {.algorithm = {"gemm", "", ""}, .math = Math::tf32}).math ==
        Math::strict);  // gemm's answer has FMA math
  on.fake.answers[Pass::forward] = {result(1, 0, cudnn::math_type::tensor_op, cudnn::determinism::none)};
  CHECK(step(0, {.math = Math::tf32}).math == Math::tf32);
  CHECK_FALSE(step(0, {.math = Math::tf32}).deterministic);  // the library's answer says so
  on.fake.answers[Pass::forward] = {result(1, 0, cudnn::math_type::standard)};
  CHECK(step(0, {.math = Math::tf32}).math == Math::tf32);  // standard math may be tf32
  CHECK(step(0, {}).math == Math::strict);
  CHECK(step(0, {.algorithm = {"gemm", "", ""}, .math = Math::tf32}).math ==
        Math::tf32);  // gemm has no answer: the requested math
  const Spec connected = spec_of(on, {"", FullyConnected{.outputs = 2}, {{2, 3, 1, 1}}});
  for (const Math math : {Math::strict, Math::tf32})
    for (const Lowered::Step& made : on.backend.lower(connected, {.math = math}).steps) CHECK(made.math == math);

  on.log.unavailable = "no GPU here";
  CHECK_FALSE(step(0, {}).deterministic);
  CHECK(step(0, {.deterministic = true}).deterministic);
  CHECK_FALSE(step(1, {.algorithm = {"", "algo_3", ""}}).deterministic);
  CHECK(step(1, {.algorithm = {"", "algo_1", ""}, .math = Math::tf32}).math == Math::tf32);
}

TEST_CASE("cudnn: an algorithm that may refuse to add to a gradient is taken by name, but not by rule") {
  FakeBackend on;
  on.fake.answers[Pass::backward_data] = {result(2), result(3), result(4), result(5), result(1)};
  on.fake.answers[Pass::backward_params] = {result(2), result(5), result(6), result(3)};
  const Spec fresh = spec_of(on, plain_case), adds = spec_of(on, plain_case, {.dtype = DType::f32, .adds = true});
  CHECK(taken(on, fresh) == std::vector<std::string>{"implicit_gemm", "fft", "fft"});
  CHECK(taken(on, adds) == std::vector<std::string>{"implicit_gemm", "algo_3", "algo_1"});
  CHECK(taken(on, adds, {.algorithm = {"", "", "winograd"}})[2] == "winograd");
  on.fake.answers[Pass::backward_data].pop_back();
  CHECK_THROWS_WITH(taken(on, adds), ContainsSubstring("backward_data") &&
                                         ContainsSubstring("winograd_nonfused: may") &&
                                         ContainsSubstring("give its name"));
}

TEST_CASE("cudnn: an error about a refused proposal does not quote the last error message, which is another call's") {
  FakeBackend on;
  on.fake.last_error = "stale";
  on.fake.answers[Pass::forward] = {result(4, 0, 3, 1, 3000)};
  CHECK_THROWS_WITH(forward_of(on, {}),
                    ContainsSubstring("fft: CUDNN_STATUS_NOT_SUPPORTED (3000)") && !ContainsSubstring("stale"));
  on.fake.answers[Pass::forward] = {result(4)};
  on.fake.workspace_status[4] = 3000;  // the last error message is this call's
  CHECK_THROWS_WITH(forward_of(on, {}), ContainsSubstring("fft: CUDNN_STATUS_NOT_SUPPORTED (3000): stale"));
}

TEST_CASE("cudnn: from cuDNN 8 on, strict math is FMA, and a proposal that allows TF32 is never taken") {
  CHECK(math_of(*std::make_unique<FakeBackend>(91900), {}) == "3");
  CHECK(math_of(*std::make_unique<FakeBackend>(8907), {}) == "3");
  CHECK(math_of(*std::make_unique<FakeBackend>(7605), {}) == "0");
  CHECK(math_of(*std::make_unique<FakeBackend>(91900), {}, DType::f64) == "0");
  FakeBackend on;
  on.fake.answers[Pass::forward] = {result(1, 0, cudnn::math_type::tensor_op),
                                    result(1, 0, cudnn::math_type::standard)};
  CHECK(forward_of(on, {.algorithm = {"implicit_precomp_gemm", "", ""}}) == "implicit_precomp_gemm");
  CHECK(math_of(on, {}) == "3");  // FMA, although the answer was the standard math
  on.fake.answers[Pass::forward].pop_back();
  CHECK_THROWS_WITH(forward_of(on, {}), ContainsSubstring("would take tensor cores"));
  CHECK_THROWS_WITH(forward_of(on, {.algorithm = {"implicit_precomp_gemm", "", ""}}),
                    ContainsSubstring("would take tensor cores"));
}

TEST_CASE("cudnn: in f64 a proposal with tensor cores is taken, because they multiply f64 in full precision") {
  FakeBackend on;
  for (const int math : {cudnn::math_type::tensor_op, cudnn::math_type::standard, cudnn::math_type::fma}) {
    on.fake.answers[Pass::forward] = {result(1, 0, math)};
    CHECK(forward_of(on, {}, DType::f64) == "implicit_precomp_gemm");
    CHECK(math_of(on, {}, DType::f64) == "0");
    CHECK(on.backend.lower(spec_of(on, plain_case, {.dtype = DType::f64}), {}).steps.at(0).math == Math::strict);
  }
}

TEST_CASE("cudnn: with tf32 requested, the proposal's math is taken, but never math that rounds to 16 bits") {
  FakeBackend on;
  on.fake.answers[Pass::forward] = {result(6, 0, cudnn::math_type::allow_conversion),
                                    result(1, 0, cudnn::math_type::tensor_op), result(0)};
  CHECK(forward_of(on, {.math = Math::tf32}) == "implicit_precomp_gemm");
  CHECK(math_of(on, {.math = Math::tf32}) == "1");
  CHECK(math_of(on, {.algorithm = {"implicit_gemm", "", ""}, .math = Math::tf32}) == "3");
  CHECK_THROWS_WITH(forward_of(on, {.math = Math::tf32}, DType::f64), ContainsSubstring("tf32 rounds factors of f32"));
  FakeBackend old(7605);
  CHECK_THROWS_WITH(forward_of(old, {.math = Math::tf32}), ContainsSubstring("7.6.5 has no tf32"));
}

TEST_CASE("cudnn: environment variables that override the math are reported, and refused if the math is wrong then") {
  const Variable override("NVIDIA_TF32_OVERRIDE", "1"), emulation("CUBLAS_EMULATE_DOUBLE_PRECISION", "1");
  FakeBackend on;
  CHECK_THAT(on.backend.describe(),
             ContainsSubstring(", environment NVIDIA_TF32_OVERRIDE=1 CUBLAS_EMULATE_DOUBLE_PRECISION=1"));
  const Case product = {"", FullyConnected{.outputs = 2}, {{2, 3, 1, 1}}};
  const auto refused = [&](const Case& c, DType dtype, const char* variable) {
    CHECK_THROWS_MATCHES(on.backend.lower(spec_of(on, c, {.dtype = dtype}), {}), UsageError, Says(variable));
  };
  refused(plain_case, DType::f32, "NVIDIA_TF32_OVERRIDE=1");
  refused(product, DType::f32, "NVIDIA_TF32_OVERRIDE=1");
  refused(product, DType::f64, "CUBLAS_EMULATE_DOUBLE_PRECISION=1");
  CHECK_NOTHROW(forward_of(on, {.math = Math::tf32}));
  CHECK_NOTHROW(forward_of(on, {}, DType::f64));
  CHECK_NOTHROW(on.backend.lower(spec_of(on, {"", Relu{}, {{1, 2, 3, 3}}}), {}));
}

TEST_CASE("cudnn: a product is refused if the workspace limit is 0 or may be too small for cuBLAS") {
  FakeBackend on;
  const Spec spec = spec_of(on, {"", FullyConnected{.outputs = 2}, {{2, 3, 1, 1}}});
  for (const std::size_t limit : {std::size_t{0}, std::size_t{16383}})
    CHECK_THROWS_MATCHES(on.backend.lower(spec, {.workspace_limit = limit}), Unsupported,
                         Says("16384 bytes of workspace, the limit is " + std::to_string(limit)));
  CHECK(on.backend.lower(spec, {.workspace_limit = 16384}).steps.at(0).kernel->workspace_bytes() == 16384);
}

TEST_CASE("cudnn: an unknown name is an error with the known names, and a bound on the error is refused") {
  FakeBackend on;
  CHECK_THROWS_MATCHES(forward_of(on, {.algorithm = {"quick", "", ""}}), UsageError,
                       Says("quick", "winograd_nonfused"));
  CHECK_THROWS_WITH(forward_of(on, {.max_error = 1e-3}), ContainsSubstring("no bound on its error"));
}

TEST_CASE("cudnn: a named algorithm is tried even if the library does not propose it") {
  FakeBackend on;
  on.fake.answers[Pass::forward] = {result(1)};
  CHECK(forward_of(on, {.algorithm = {"gemm", "", ""}}) == "gemm");
  on.fake.workspace_status[2] = 3000;
  CHECK_THROWS_WITH(forward_of(on, {.algorithm = {"gemm", "", ""}}),
                    ContainsSubstring("gemm: CUDNN_STATUS_NOT_SUPPORTED"));
}

TEST_CASE("cudnn: without a device, the workspace is the limit, and is reported as an upper bound") {
  FakeBackend on;
  on.log.unavailable = "no GPU here";
  const Lowered lowered =
      on.backend.lower(spec_of(on, plain_case), {.algorithm = {"", "algo_1", ""}, .workspace_limit = 4096});
  CHECK_FALSE(lowered.workspace_exact);
  CHECK(lowered.steps[0].algorithm == "heuristic");
  CHECK(lowered.steps[1].algorithm == "algo_1");
  CHECK(lowered.steps[0].kernel->workspace_bytes() == 4096);
  Args args;
  args.x.resize(1), args.w.resize(2), args.dw.resize(2), args.dx.resize(1);
  CHECK_THROWS_MATCHES(lowered.steps[0].kernel->run(args), DeviceError, Says("no GPU here"));
  on.log.unavailable.clear();
  CHECK(on.backend.lower(spec_of(on, plain_case), {}).workspace_exact);
}
