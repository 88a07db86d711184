// The refusals of the backend eigen: the type and the text of each error.

#include <variant>

#include "tests/support/backend.h"
#include "tests/support/cases/unit.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

const std::vector<Case> one_of_each = {
    {"", Conv{.channels = 2, .kernel = 3}, {{1, 2, 5, 5}}},
    {"", ConvTranspose{.channels = 2, .kernel = 3}, {{1, 2, 5, 5}}},
    {"", MaxPool{.window = 2, .stride = 2}, {{1, 2, 4, 4}}},
    {"", AveragePool{.window = 2, .stride = 2}, {{1, 2, 4, 4}}},
    {"", GlobalAveragePool{}, {{1, 2, 3, 3}}},
    {"", BatchNorm{}, {{2, 2, 3, 3}}},
    {"", GroupNorm{.groups = 2}, {{1, 4, 2, 2}}},
    {"", LayerNorm{}, {{1, 4, 2, 2}}},
    {"", Lrn{}, {{1, 5, 2, 2}}},
    {"", Relu{}, {{1, 2, 3, 3}}},
    {"", FullyConnected{.outputs = 3}, {{2, 4, 1, 1}}},
    {"", Dropout{}, {{1, 2, 3, 3}}},
    {"", Reduce{.by = ReduceBy::sum, .rows = true}, {{1, 2, 3, 3}}},
    {"", Softmax{}, {{2, 4, 1, 1}}},
    {"", Pointwise{Function::clip, 0, 6}, {{1, 2, 3, 3}}},
    {"", Pointwise{Function::hard_sigmoid, 1.0 / 6, 0.5}, {{1, 2, 3, 3}}},
    {"", Pointwise{Function::hard_swish}, {{1, 2, 3, 3}}},
    {"", Pointwise{Function::silu}, {{1, 2, 3, 3}}},
    {"", Add{}, {{1, 2, 3, 3}, {1, 2, 3, 3}}},
    {"", Binary{BinaryFunction::multiply}, {{1, 2, 3, 3}, {1, 2, 1, 1}}},
    {"", ScaleShift{}, {{1, 2, 3, 3}}},
    {"", Pad{.before = 1, .after = 0}, {{1, 2, 3, 3}}},
    {"", Resize{.to = 6}, {{1, 2, 3, 3}}},
    {"", channel_shuffle({1, 2, 3, 3}, 2), {{1, 2, 3, 3}}},
    {"", Concat{}, {{1, 2, 3, 3}, {1, 1, 3, 3}}},
    {"", Slice{.first = 0, .count = 1}, {{1, 2, 3, 3}}},
};

Spec f32_spec(const Case& c) { return *make_spec(oracle(), c, {.dtype = DType::f32}); }

}  // namespace

TEST_CASE("eigen refuses nhwc, and the error names nhwc") {
  for (const Case& c : one_of_each) {
    INFO(to_string(c));
    const Spec spec = *make_spec(oracle(), c, {.dtype = DType::f32, .layout = Layout::nhwc});
    CHECK_THROWS_MATCHES(oracle().lower(spec, {}), Unsupported, Says("eigen", "nhwc", "nchw"));
  }
}

TEST_CASE("eigen refuses mixtures of types, and the error names the op and the types") {
  const auto refuses = [](Spec spec, const char* op, const char* type, const char* other) {
    CHECK_THROWS_MATCHES(oracle().lower(spec, {}), Unsupported, Says("eigen: ", op, type, other));
  };
  for (const Case& c : one_of_each)
    for (const DType dtype : {DType::f16, DType::bf16}) {
      INFO(to_string(c));
      const std::string values(to_string(dtype)), op = to_string(c.op);
      Spec spec = *make_spec(oracle(), c, {.dtype = dtype});
      CHECK_NOTHROW(oracle().lower(spec, {}));
      for (TensorSpec& w : spec.w) {
        w.dtype = dtype;
        refuses(spec, op.c_str(), "parameter", values.c_str());
        w.dtype = DType::f32;
      }
      spec.y.dtype = DType::f64;
      refuses(spec, op.c_str(), values.c_str(), "f64");
      if (is_loss(c.op) || std::holds_alternative<Embedding>(c.op)) continue;
      spec.y.dtype = dtype == DType::f16 ? DType::bf16 : DType::f16;
      refuses(spec, op.c_str(), "bf16", "f16");
    }
  Spec spec = *make_spec(oracle(), {"", Relu{}, {{1, 2, 3, 3}}}, {});
  spec.x[0].dtype = DType::f32;
  refuses(spec, "relu", "f32", "f64");
  spec.x[0].dtype = spec.y.dtype = DType::u64;
  refuses(spec, "relu", "u64", "bf16");
}

TEST_CASE("eigen refuses ids in a type that does not hold them exactly") {
  const auto lower = [](int vocabulary, DType ids) {
    Spec spec = *make_spec(oracle(), {"", Embedding{vocabulary, 2}, {{1, 1, 3, 1}}}, {.dtype = DType::bf16});
    spec.x[0].dtype = ids;
    oracle().lower(spec, {});
  };
  CHECK_NOTHROW(lower(257, DType::bf16));
  CHECK_THROWS_MATCHES(lower(258, DType::bf16), Unsupported,
                       Says("eigen: embedding(258, 2): ids up to 257 in bf16, which holds whole numbers "
                            "exactly up to 256; give them in f32"));
  CHECK_NOTHROW(lower(1 << 24, DType::f32));
}

TEST_CASE("eigen refuses an error bound that half precision cannot keep, and says why") {
  const Spec spec = *make_spec(oracle(), one_of_each[0], {.dtype = DType::bf16});
  for (const char* const by : {"", "im2col_gemm"})  // the first by rule depends on the machine
    for (const Lowered::Step& step : oracle().lower(spec, {.algorithm = {by, by, by}, .max_error = 0.004}).steps) {
      CHECK((step.max_error > 0x1p-8) == !step.covers(Pass::backward_params));
      CHECK(step.max_error < 0.004);
    }
  CHECK_THROWS_MATCHES(oracle().lower(spec, {.max_error = 0.0039}), Unsupported,
                       Says("conv", "bf16", "0.00390625, above 0.0039"));
}

TEST_CASE("eigen refuses math other than strict") {
  const Choice choice{.math = Math::tf32};
  CHECK_THROWS_MATCHES(oracle().lower(f32_spec(one_of_each[0]), choice), Unsupported, Says("tf32"));
}

TEST_CASE("an unknown algorithm of any op of eigen is an error that lists the known algorithms") {
  for (const Case& c : one_of_each) {
    INFO(to_string(c));
    const Spec spec = f32_spec(c);
    CHECK_THROWS_AS(oracle().lower(spec, {.algorithm = {"quick", "", ""}}), UsageError);
    for (const std::string& known : oracle().algorithms(spec, Pass::forward))
      CHECK_THROWS_WITH(oracle().lower(spec, {.algorithm = {"quick", "", ""}}),
                        ContainsSubstring("quick") && ContainsSubstring(known));
  }
}

TEST_CASE("eigen refuses the name implicit_gemm, and names im2col_gemm instead") {
  const Spec spec = f32_spec(one_of_each[0]);
  for (std::size_t pass = 0; pass < 3; ++pass) {
    Choice choice;
    choice.algorithm[pass] = "implicit_gemm";
    CHECK_THROWS_MATCHES(oracle().lower(spec, choice), UsageError,
                         Says("implicit_gemm and im2col_gemm are one algorithm here", "name it im2col_gemm"));
  }
  Graph graph("one");
  conv(graph.input({1, 2, 5, 5}), "first", {.channels = 2, .kernel = 3});
  Options options{.choice = {.algorithm = {"implicit_gemm", "", ""}}};
  CHECK_THROWS_WITH(Plan(graph, oracle(), options), ContainsSubstring("im2col_gemm"));
  options.choice_of["first"] = std::exchange(options.choice, {});
  CHECK_THROWS_WITH(Plan(graph, oracle(), options),
                    ContainsSubstring("first") && ContainsSubstring("name it im2col_gemm"));
}

TEST_CASE("eigen lists im2col_eigen, but never takes it by default") {
  const Spec spec = f32_spec(one_of_each[0]);
  for (const Pass pass : {Pass::forward, Pass::backward_params, Pass::backward_data})
    CHECK(oracle().algorithms(spec, pass).back() == "im2col_eigen");
  for (const double max_error : {no_bound, 1e-5, 1e-6, 1.2e-7})
    for (const std::size_t workspace_limit : {std::size_t{0}, std::numeric_limits<std::size_t>::max()})
      for (const Lowered::Step& step :
           oracle().lower(spec, {.max_error = max_error, .workspace_limit = workspace_limit}).steps)
        CHECK(step.algorithm != "im2col_eigen");
}

TEST_CASE("eigen's description says which ops the library Eigen computes") {
  CHECK_THAT(oracle().describe(), ContainsSubstring("Lamina") && ContainsSubstring("Eigen 3.") &&
                                      ContainsSubstring("im2col_eigen, lrn, softmax and losses"));
}

TEST_CASE("eigen runs every algorithm that it lists, and says which one runs") {
  for (const Case& c : one_of_each) {
    const Spec spec = f32_spec(c);
    const Pass passes[] = {Pass::forward, Pass::backward_params, Pass::backward_data};
    for (std::size_t p = 0; p < 3; ++p)
      for (const std::string& name : oracle().algorithms(spec, passes[p])) {
        INFO(to_string(c) << ' ' << to_string(passes[p]) << " by " << name);
        Choice choice;
        choice.algorithm[p] = name;
        bool found = false;
        for (const Lowered::Step& step : oracle().lower(spec, choice).steps)
          for (const Pass covered : step.passes) found = found || (covered == passes[p] && step.algorithm == name);
        CHECK(found);
      }
  }
}

TEST_CASE("winograd_4x4 refuses 5x5 kernels and names its sizes, and winograd_2x2 takes 3x3 and 5x5") {
  for (std::size_t pass = 0; pass < 3; ++pass) {
    const auto by = [&](const char* algorithm, Size kernel) {
      Choice choice;
      choice.algorithm[pass] = algorithm;
      oracle().lower(f32_spec({"", Conv{.channels = 2, .kernel = kernel}, {{1, 2, 7, 7}}}), choice);
    };
    CHECK_THROWS_MATCHES(by("winograd_4x4", 5), Unsupported, Says("winograd_4x4 takes 3x3 kernels, not 5x5"));
    CHECK_THROWS_WITH(by("winograd_2x2", {5, 3}), ContainsSubstring("takes 3x3 and 5x5 kernels, not 5x3"));
    CHECK_NOTHROW(by("winograd_2x2", 5));
    CHECK_NOTHROW(by("winograd_2x2", 3));
  }
}

TEST_CASE("depthwise is the default for several groups of few channels, and refuses other groups") {
  const auto takes = [](const Conv& op, int channels, int plane = 9) {
    const Spec spec = f32_spec({"", op, {{1, channels, plane, plane}}});
    std::array<bool, 3> of_pass{};
    for (const Pass pass : {Pass::forward, Pass::backward_params, Pass::backward_data})
      of_pass[static_cast<std::size_t>(pass)] = oracle().algorithms(spec, pass).front() == "depthwise";
    return of_pass;
  };
  using Passes = std::array<bool, 3>;
  const Conv conv{.channels = 64, .kernel = 3, .groups = 2},
      strided{.channels = 64, .kernel = 3, .stride = 2, .groups = 2};
  CHECK(takes(conv, 2) == Passes{true, true, true});
  CHECK(takes(conv, 8) == Passes{true, true, true});
  CHECK(takes(conv, 32) == Passes{true, false, true});
  CHECK(takes(conv, 38) == Passes{true, false, false});  // only by vectors of filters
  const Conv odd{.channels = 62, .kernel = 3, .groups = 2};
  CHECK(takes(odd, 38) == Passes{});
  CHECK(takes(strided, 16) == Passes{true, false, true});
  CHECK(takes(strided, 32) == Passes{false, false, true});
  CHECK(takes(strided, 32, 17) == Passes{true, false, true});
  const Conv one_group{.channels = 4, .kernel = 3};
  CHECK(takes(one_group, 2) == Passes{});
  const auto refusal = [](const Conv& op, int channels, const std::string& why) {
    CHECK_THROWS_MATCHES(
        oracle().lower(f32_spec({"", op, {{1, channels, 9, 9}}}), {.algorithm = {"", "depthwise", ""}}), Unsupported,
        Says(why));
  };
  refusal(one_group, 2, "depthwise is for several groups, or one channel");
  refusal(conv, 68, "depthwise is for groups of at most 32 channels and filters, not of 34 and 32");
}

TEST_CASE("the error of a plan names the node that its backend refuses") {
  Graph graph("refused");
  conv(graph.input({1, 2, 4, 4}), "first", {.channels = 2, .kernel = 3});
  CHECK_THROWS_MATCHES(Plan(graph, oracle(), {.layout = Layout::nhwc}), Unsupported, Says("first", "nhwc"));
  Options options;
  options.choice_of["first"] = {.algorithm = {"quick", "", ""}};
  CHECK_THROWS_MATCHES(Plan(graph, oracle(), options), UsageError, Says("first", "quick", "direct"));
}

TEST_CASE("an unknown backend is refused with the known names") {
  CHECK_THROWS_MATCHES(make_backend("eigenvalue"), UsageError, Says("eigenvalue", "eigen", "cudnn"));
}

TEST_CASE("eigen refuses a workspace limit below the need of any op, and the error has both numbers") {
  int with_workspace = 0;
  for (const Case& c : one_of_each) {
    INFO(to_string(c));
    const Spec spec = f32_spec(c);
    Choice choice;
    for (const Pass pass : {Pass::forward, Pass::backward_params, Pass::backward_data})
      if (const auto names = oracle().algorithms(spec, pass); !names.empty())
        choice.algorithm[static_cast<std::size_t>(pass)] = names.front();
    std::size_t most = 0;
    for (const Lowered::Step& step : oracle().lower(spec, choice).steps)
      most = std::max(most, step.kernel->workspace_bytes());
    if (most == 0) continue;
    ++with_workspace;
    choice.workspace_limit = most;
    CHECK_NOTHROW(oracle().lower(spec, choice));
    choice.workspace_limit = most - 1;
    CHECK_THROWS_MATCHES(oracle().lower(spec, choice), Unsupported,
                         Says(std::to_string(most), std::to_string(most - 1)));
  }
  // conv, conv_transpose, max and average pool, group and layer norm, lrn, fully connected, resize
  CHECK(with_workspace == 9);
}

TEST_CASE("eigen fuses a ReLU after every op whose page in docs says so, and after no other op") {
  for (const Case& c : one_of_each) {
    INFO(to_string(c));
    const bool takes = std::holds_alternative<Conv>(c.op) || std::holds_alternative<FullyConnected>(c.op) ||
                       std::holds_alternative<BatchNorm>(c.op) || std::holds_alternative<Add>(c.op);
    Case chain = c;
    chain.tail = {{Relu{}}};
    CHECK(make_spec(oracle(), chain, {}).has_value() == takes);
  }
}

TEST_CASE("eigen refuses a unit with a tail that eigen does not fuse") {
  const std::vector<std::vector<Op>> tails = {{Softmax{}}, {Relu{}, Relu{}}, {Relu{}, Add{}}, {Add{}, Relu{}, Relu{}}};
  for (const Case& c : one_of_each)
    for (const std::vector<Op>& tail : tails) {
      INFO(to_string(c));
      Spec spec = f32_spec(c);
      spec.tail = tail;
      CHECK_THROWS_MATCHES(oracle().lower(spec, {}), Unsupported, Says("cannot be fused", std::string(op_name(c.op))));
    }
}

TEST_CASE("eigen refuses options of other backends instead of ignoring them") {
  CHECK_THROWS_MATCHES(make_backend("eigen", {.device = 1}), UsageError, Says("no device 1"));
}
