// A batch norm folded into a convolution in inference, on a fake cuDNN: the folds of the prepare pass, and the calls
// that read the folded filter.

#include "lamina/plan.h"
#include "tests/cudnn/bound.h"
#include "tests/support/catch.h"

using namespace lamina::test;
using CallTexts = std::vector<std::string>;

namespace {

const BatchNorm norm{.epsilon = 0.25};

Case folded(bool bias, std::vector<Link> tail) {
  return {"", Conv{.channels = 4, .kernel = 1, .bias = bias}, {{2, 3, 2, 2}}, std::move(tail), Mode::inference};
}

/// A unit in inference. Recorded calls show the filter in the prepared memory as "folded filter".
struct Folded : BoundUnit {
  Folded(FakeBackend& on, const Spec& spec, const Choice& choice = {}) : BoundUnit(on, spec, choice) {
    on.fake.name(filter(), "folded filter");
  }
  char* filter() const { return static_cast<char*>(args.prepared) + 256; }
};

/// Two convolutions with batch norms, and a third that adds the value of the first.
Graph residual() {
  Graph graph("residual");
  const Value x = relu(batch_norm(conv(graph.input({2, 3, 4, 4}), "a", {.channels = 4, .kernel = 1}), "a.bn"));
  const Value y = relu(batch_norm(conv(x, "b", {.channels = 4, .kernel = 3, .pad = 1, .bias = false}), "b.bn"));
  relu(add(batch_norm(conv(y, "c", {.channels = 4, .kernel = 1, .bias = false}), "c.bn"), x));
  return graph;
}

}  // namespace

TEST_CASE("cudnn: prepare folds a batch norm into filter and bias, even if the convolution has no bias") {
  for (const bool bias : {true, false})
    for (const DType dtype : {DType::f32, DType::f64}) {
      FakeBackend on;
      Folded unit(on, spec_of(on, folded(bias, {{norm}}), {.dtype = dtype}));
      CHECK(unit.lowered.prepared_bytes == 256 + 4 * 3 * size_of(dtype));
      CHECK(unit.run(Pass::prepare).empty());
      REQUIRE(on.log.folds.size() == 1);
      const auto& [fold, w_to, bias_to] = on.log.folds[0];
      const std::size_t scale = bias ? 2 : 1;
      CHECK(fold.dtype == dtype);
      CHECK(fold.w == unit.args.w[0].data);
      CHECK(fold.bias == (bias ? unit.args.w[1].data : nullptr));
      CHECK(fold.scale == unit.args.w[scale].data);
      CHECK(fold.shift == unit.args.w[scale + 1].data);
      CHECK(fold.mean == unit.args.state[0].data);
      CHECK(fold.variance == unit.args.state[1].data);
      CHECK(fold.epsilon == 0.25);
      CHECK(fold.filters == 4);
      CHECK(fold.weights == 3);
      CHECK(w_to == unit.filter());
      CHECK(bias_to == unit.args.prepared);
    }
}

TEST_CASE("cudnn: a folded convolution with Add and ReLU is one call by a fused algorithm, and four calls by default") {
  FakeBackend on;
  const Spec spec = spec_of(on, folded(false, {{norm}, {Add{}}, {Relu{}}}));
  Folded unit(on, spec, {.algorithm = {"implicit_gemm+fused", "", ""}});
  const std::string y = "f32 2x4x2x2 / 16 4 2 1", x = "f32 2x3x2x2 / 12 4 2 1, x0, f32 filter 4x3x1x1, folded filter, ";
  const std::string conv = "Convolution2dDescriptor 0 0 1 1 1 1 1 0, ConvolutionGroupCount 1, ConvolutionMathType 3, ";
  const std::string bias = "f32 1x4x1x1 / 4 1 1 1, prepared, ";
  CHECK(unit.run(Pass::forward) ==
        CallTexts{"ConvolutionBiasActivationForward(handle, 1, " + x + conv + "0, workspace, 100, 1, " + y + ", x1, " +
                  bias + "ActivationDescriptor 1 0 0, " + y + ", y)"});
  CHECK(on.log.folds.empty());
  CHECK_FALSE(unit.lowered.y_may_alias_x[1]);  // the separate calls below write y before they read x1

  Folded by_rule(on, spec);
  const CallTexts apart = by_rule.run(Pass::forward);
  REQUIRE(apart.size() == 4);
  CHECK(apart[0] == "ConvolutionForward(handle, 1, " + x + conv + "0, workspace, 100, 0, " + y + ", y)");
  CHECK(apart[1] == "AddTensor(handle, 1, " + bias + "1, " + y + ", y)");
  CHECK(apart[2] == "AddTensor(handle, 1, " + y + ", x1, 1, " + y + ", y)");
  CHECK(apart[3].starts_with("ActivationForward("));
}

TEST_CASE("cudnn: a folded convolution without a ReLU, or with an Add of another pitch, is not fused into one call") {
  FakeBackend on;
  Folded plain(on, spec_of(on, folded(true, {{norm}})));
  plain.run(Pass::forward);
  CHECK(on.fake.names() == CallTexts{"ConvolutionForward", "AddTensor"});
  Folded added(on, spec_of(on, folded(true, {{norm}, {Add{}}})));
  added.run(Pass::forward);
  CHECK(on.fake.names() == CallTexts{"ConvolutionForward", "AddTensor", "AddTensor"});
  Spec spec = spec_of(on, folded(true, {{norm}, {Add{}}, {Relu{}}}));
  spec.x[1].pitch += 4;
  Folded pitched(on, spec);
  const CallTexts calls = pitched.run(Pass::forward);
  CHECK(on.fake.names() == CallTexts{"ConvolutionForward", "AddTensor", "AddTensor", "ActivationForward"});
  CHECK(calls[2].find("f32 2x4x2x2 / 20 4 2 1, x1") != std::string::npos);
  CHECK(on.backend.algorithms(spec, Pass::forward).size() == 8);  // no fused algorithm
}

TEST_CASE("cudnn: in inference a function other than ReLU is our own kernel on y after the convolution's calls") {
  FakeBackend on;
  const Pointwise clip{Function::clip, -1, 2};
  for (const std::vector<Link>& tail :
       {std::vector<Link>{{clip}}, {{norm}, {Pointwise{Function::silu}}}, {{norm}, {Add{}}, {clip}}}) {
    const bool gaps = tail.size() == 1;
    const Spec spec = spec_of(on, folded(true, tail), {DType::f32, gaps ? Layout::nhwc : Layout::nchw, gaps});
    Folded unit(on, spec);
    on.log.calls.clear();
    put(on, unit.args.y, std::vector<double>(32, -8));
    unit.run(Pass::forward);
    CHECK(on.fake.names().back() == "AddTensor");
    CHECK(on.log.calls == CallTexts{std::string(op_name(tail.back().op)) + " in place"});
    CHECK(on.backend.algorithms(spec, Pass::forward).size() == 8);  // no fused algorithm
#if defined(LAMINA_CUDA_ON_HOST)
    if (op_name(tail.back().op) == "clip") CHECK(get(on, unit.args.y) == std::vector<double>(32, -1));
#endif
    CHECK_FALSE(make_spec(on.backend, folded(true, tail), {.dtype = DType::f64}).has_value());
  }
  Case training = folded(true, {{clip}});
  training.mode = Mode::training;
  CHECK_FALSE(make_spec(on.backend, training, {.dtype = DType::f32}).has_value());
}

TEST_CASE("cudnn: a batch norm is folded only in inference, and ReLU and Add are fused with it in f32") {
  FakeBackend on;
  Case training = folded(true, {{norm}});
  training.mode = Mode::training;
  CHECK_FALSE(make_spec(on.backend, training, {.dtype = DType::f32}).has_value());
  for (const std::vector<Link>& tail : {std::vector<Link>{{norm}, {Relu{}}}, {{norm}, {Add{}}}}) {
    CHECK(make_spec(on.backend, folded(false, tail), {.dtype = DType::f32}).has_value());
    CHECK(make_spec(on.backend, folded(false, tail), {.dtype = DType::f32, .layout = Layout::nhwc}).has_value());
    CHECK_FALSE(make_spec(on.backend, folded(false, tail), {.dtype = DType::f64}).has_value());
  }
  CHECK_FALSE(make_spec(on.backend, folded(false, {{Add{}}}), {.dtype = DType::f32}).has_value());
  Spec twice = spec_of(on, folded(false, {{norm}}));
  twice.tail.push_back(norm);
  CHECK_THROWS_AS(on.backend.lower(twice, {}), Unsupported);
}

TEST_CASE("cudnn: an inference plan folds when it is made and when parameters change, and counts folded filters") {
  FakeBackend on;
  const Options options{.mode = Mode::inference};
  const Graph graph = residual();
  Plan plan(graph, on.backend, options);
  CHECK(plan.calls().size() == 3);
  CHECK(on.log.folds.size() == 3);
  const std::size_t filters = (4 * 3 + 4 * 4 * 9 + 4 * 4) * sizeof(float);
  CHECK(plan.memory().prepared >= 3 * 256 + filters);
  CHECK(predict_memory(graph, on.backend, options).prepared == plan.memory().prepared);
  on.fake.forget();
  plan.forward();
  plan.forward();
  CHECK(on.log.folds.size() == 3);
  CallTexts each;
  for (int pass = 0; pass < 2; ++pass)
    for (const bool adds : {false, false, true}) {
      each.insert(each.end(), {"ConvolutionForward", "AddTensor"});
      if (adds) each.emplace_back("AddTensor");
      each.emplace_back("ActivationForward");
    }
  CHECK(on.fake.names() == each);
  plan.parameters_changed();
  CHECK(on.log.folds.size() == 6);
}
