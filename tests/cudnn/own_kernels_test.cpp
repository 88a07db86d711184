// Ops that cuDNN lacks, on a fake: the kernels of the backend cuda compute them, here on the host.

#include "kernels/host/grid.h"
#include "lamina/plan.h"
#include "lamina/random.h"
#include "lamina/workloads.h"
#include "tests/cudnn/bound.h"
#include "tests/support/catch.h"

using namespace lamina::test;

#if defined(LAMINA_CUDA_ON_HOST)

TEST_CASE("cudnn: the loss of a softmax is computed by our kernels, without a call of the library") {
  for (const Conditions& conditions : {Conditions{.dtype = DType::f32, .layout = Layout::nchw},
                                       {.dtype = DType::f32, .layout = Layout::nhwc},
                                       {.dtype = DType::f16, .layout = Layout::nchw},
                                       {.dtype = DType::bf16, .layout = Layout::nhwc}}) {
    FakeBackend on;
    BoundUnit unit(on, spec_of(on, {"", SoftmaxCrossEntropy{}, {{2, 3, 1, 1}, {2, 1, 1, 1}}}, conditions));
    put(on, unit.args.x[0], {0, 0, 0, 5, 5, 5});
    put(on, unit.args.x[1], {0, 2});
    put(on, unit.args.dy, {3, 0});
    CHECK(unit.run(Pass::forward).empty());
    CHECK(get(on, unit.args.y)[0] == Approx(std::log(3.0)));
    CHECK(get(on, unit.args.y)[1] == 0.5);  // of equal logits the first counts
    CHECK(unit.run(Pass::backward_data).empty());
    const std::vector<double> dx = get(on, unit.args.dx[0]), wanted = {-1, .5, .5, .5, .5, -1};
    for (std::size_t i = 0; i < dx.size(); ++i) CHECK(dx[i] == Approx(wanted[i]).epsilon(1e-6));
  }
}

TEST_CASE("cudnn: the loss of a sigmoid is computed by our kernels, and adds to a gradient that is there") {
  FakeBackend on;
  BoundUnit unit(
      on, spec_of(on, {"", SigmoidCrossEntropy{}, {{2, 1, 1, 1}, {2, 1, 1, 1}}}, {.dtype = DType::f64, .adds = true}));
  put(on, unit.args.x[0], {0, 0});
  put(on, unit.args.x[1], {1, 0});
  put(on, unit.args.dy, {2, 0});
  put(on, unit.args.dx[0], {10, 20});
  CHECK(unit.run(Pass::forward).empty());
  CHECK(get(on, unit.args.y)[0] == Approx(std::log(2.0)));
  CHECK(unit.run(Pass::backward_data).empty());
  CHECK(get(on, unit.args.dx[0]) == std::vector<double>{9.5, 20.5});
}

TEST_CASE("cudnn: dropout draws our mask, at a step that a training pass advances") {
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::f16);
  INFO(to_string(dtype));
  const Case c = {"", Dropout{.rate = 0.25, .seed = 7}, {{2, 3, 2, 2}}};
  FakeBackend on;
  BoundUnit unit(on, spec_of(on, c, {.dtype = dtype}));
  *unit.args.state[0].as<std::uint64_t>() = 5;
  put(on, unit.args.x[0], std::vector<double>(24, 1));
  put(on, unit.args.dy, std::vector<double>(24, 1));
  const auto is_masked = [&](const Tensor& tensor) {
    const std::vector<double> values = get(on, tensor);
    for (std::size_t i = 0; i < values.size(); ++i)
      CHECK(values[i] == Approx(philox(7, i / 4, 5)[i % 4] < 0x40000000U ? 0 : 4.0 / 3).epsilon(0x1p-10));
  };
  for (const Pass pass : {Pass::forward, Pass::recompute}) {
    put(on, unit.args.y, std::vector<double>(24, NAN));
    CHECK(unit.run(pass).empty());
    is_masked(unit.args.y);
  }
  CHECK(unit.run(Pass::backward_data).empty());
  is_masked(unit.args.dx[0]);
  CHECK(*unit.args.state[0].as<std::uint64_t>() == 6);
  CHECK(on.log.calls.empty());  // halves are read and written as they are
  unit.args.dx[0] = {};
  CHECK_NOTHROW(unit.run(Pass::backward_data));

  BoundUnit inference(on, spec_of(on, {"", c.op, c.x, {}, Mode::inference}, {.dtype = dtype}));
  put(on, inference.args.x[0], std::vector<double>(24, 3));
  CHECK(inference.run(Pass::forward).empty());
  CHECK(get(on, inference.args.y) == std::vector<double>(24, 3));
  inference.args.y = inference.args.x[0];
  CHECK_NOTHROW(inference.run(Pass::forward));
}

/// The copies and fills that the work launches.
template <class Work>
std::uint64_t moves_of(const Work& work) {
  const auto count = [] {
    std::map<std::string, std::uint64_t> run = lamina::cuda_host::host::kernels_run();
    return run["copy_kernel"] + run["fill_kernel"];
  };
  const std::uint64_t before = count();
  work();
  return count() - before;
}

TEST_CASE("cudnn: a concatenation copies each input to its channels, unless it is there") {
  const Layout layout = GENERATE(Layout::nchw, Layout::nhwc);
  const DType dtype = GENERATE(DType::f32, DType::f16);
  INFO(to_string(layout) << ' ' << to_string(dtype));
  FakeBackend on;
  const Case c = {"", Concat{}, {{2, 1, 1, 2}, {2, 2, 1, 2}}};
  BoundUnit unit(on, spec_of(on, c, {.dtype = dtype, .layout = layout}));
  const std::vector<double> first = {1, 2, 3, 4}, second = {5, 6, 7, 8, 9, 10, 11, 12};
  const std::vector<double> joined = {1, 2, 5, 6, 7, 8, 3, 4, 9, 10, 11, 12};
  put(on, unit.args.x[0], first);
  put(on, unit.args.x[1], second);
  put(on, unit.args.dy, joined);
  const auto forward = [&] { CHECK(unit.run(Pass::forward).empty()); };
  const auto backward = [&] { CHECK(unit.run(Pass::backward_data).empty()); };
  CHECK(moves_of(forward) == 2);
  CHECK(get(on, unit.args.y) == joined);
  CHECK(moves_of(backward) == 2);
  CHECK(get(on, unit.args.dx[0]) == first);
  CHECK(get(on, unit.args.dx[1]) == second);
  const auto place = [&](const Tensor& whole, int channel) {
    const std::int64_t elements = channel * (layout == Layout::nchw ? 2 : 1);
    return whole.as<char>() + static_cast<std::size_t>(elements) * size_of(dtype);
  };
  for (std::size_t i = 0; i < 2; ++i) {
    unit.args.x[i].data = place(unit.args.y, static_cast<int>(i));
    unit.args.dx[i].data = place(unit.args.dy, static_cast<int>(i));
    unit.args.x[i].pitch = unit.args.dx[i].pitch = unit.args.y.pitch;
  }
  CHECK(moves_of(forward) == 0);
  CHECK(moves_of(backward) == 0);
  unit.args.dx[0] = {};
  unit.args.dx[1].data = nullptr;
  CHECK(moves_of(backward) == 0);
}

TEST_CASE("cudnn: a slice copies its channels, and the others' gradient is zero, or what it was") {
  const Layout layout = GENERATE(Layout::nchw, Layout::nhwc);
  INFO(to_string(layout));
  FakeBackend on;
  const Case c = {"", Slice{.first = 1, .count = 1}, {{2, 3, 1, 2}}};
  BoundUnit unit(on, spec_of(on, c, {.dtype = DType::f32, .layout = layout}));
  const std::vector<double> x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, part = {3, 4, 9, 10};
  const std::vector<double> spread = {0, 0, 3, 4, 0, 0, 0, 0, 9, 10, 0, 0};
  put(on, unit.args.x[0], x);
  put(on, unit.args.dy, part);
  put(on, unit.args.dx[0], std::vector<double>(12, NAN));
  const auto forward = [&] { CHECK(unit.run(Pass::forward).empty()); };
  const auto backward = [&] { CHECK(unit.run(Pass::backward_data).empty()); };
  CHECK(moves_of(forward) == 1);
  CHECK(get(on, unit.args.y) == part);
  CHECK(moves_of(backward) == 3);
  CHECK(get(on, unit.args.dx[0]) == spread);
  const int apart = layout == Layout::nchw ? 2 : 1;
  unit.args.dy.data = unit.args.dx[0].as<float>() + apart;
  unit.args.y.data = unit.args.x[0].as<float>() + apart;
  unit.args.dy.pitch = unit.args.y.pitch = unit.args.x[0].pitch;
  CHECK(moves_of(forward) == 0);
  CHECK(moves_of(backward) == 2);
  CHECK(get(on, unit.args.dx[0]) == spread);
  unit.args.dx[0] = {};
  CHECK(moves_of(backward) == 0);

  BoundUnit adds(on, spec_of(on, c, {.dtype = DType::f32, .layout = layout, .adds = true}));
  put(on, adds.args.dy, part);
  put(on, adds.args.dx[0], x);
  CHECK(adds.run(Pass::backward_data).empty());
  CHECK(get(on, adds.args.dx[0]) == std::vector<double>{1, 2, 6, 8, 5, 6, 7, 8, 18, 20, 11, 12});
  BoundUnit all(on, spec_of(on, {"", Slice{.first = 0, .count = 3}, c.x}));
  CHECK(moves_of([&] { all.run(Pass::backward_data); }) == 1);
}

TEST_CASE("cudnn: an embedding and its gradient are computed by our kernels") {
  FakeBackend on;
  BoundUnit unit(on, spec_of(on, {"", Embedding{.vocabulary = 3, .features = 2}, {{1, 1, 3, 1}}}));
  put(on, unit.args.w[0], {1, 2, 3, 4, 5, 6});
  put(on, unit.args.x[0], {2, 0, 2});
  put(on, unit.args.dy, {1, 10, 100, 2, 20, 200});
  for (const Pass pass : {Pass::forward, Pass::recompute}) {
    put(on, unit.args.y, std::vector<double>(6, NAN));
    CHECK(unit.run(pass).empty());
    CHECK(get(on, unit.args.y) == std::vector<double>{5, 1, 5, 6, 2, 6});
  }
  CHECK(unit.run(Pass::backward_params).empty());
  CHECK(get(on, unit.args.dw[0]) == std::vector<double>{10, 20, 0, 0, 101, 202});
}

TEST_CASE("cudnn: a clip and a product are computed by our kernels in either layout, without a call of the library") {
  for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
    FakeBackend on;
    const Conditions conditions{.dtype = DType::f32, .layout = layout};
    BoundUnit clip(on, spec_of(on, {"", Pointwise{Function::clip, -1, 6}, {{1, 2, 1, 2}}}, conditions));
    put(on, clip.args.x[0], {-3, 2, 6, 8});
    put(on, clip.args.dy, {1, 2, 3, 4});
    CHECK(clip.run(Pass::forward).empty());
    CHECK(get(on, clip.args.y) == std::vector<double>{-1, 2, 6, 6});
    CHECK(clip.run(Pass::backward_data).empty());
    CHECK(get(on, clip.args.dx[0]) == std::vector<double>{0, 2, 0, 0});

    BoundUnit product(on,
                      spec_of(on, {"", Binary{BinaryFunction::multiply}, {{1, 2, 1, 2}, {1, 2, 1, 2}}}, conditions));
    put(on, product.args.x[0], {1, 2, 3, 4});
    put(on, product.args.x[1], {5, 6, 7, 8});
    put(on, product.args.dy, {1, 1, 2, 2});
    CHECK(product.run(Pass::forward).empty());
    CHECK(get(on, product.args.y) == std::vector<double>{5, 12, 21, 32});
    CHECK(product.run(Pass::backward_data).empty());
    CHECK(get(on, product.args.dx[0]) == std::vector<double>{5, 6, 14, 16});
    CHECK(get(on, product.args.dx[1]) == std::vector<double>{1, 2, 6, 8});
  }
}

TEST_CASE("cudnn: ops that networks from files need are taken with gaps between the images of nchw") {
  const FakeBackend on;
  const Shape x{2, 4, 3, 3};
  for (const Case& c : std::vector<Case>{{"", Pointwise{Function::clip, 0, 6}, {x}},
                                         {"", Pointwise{Function::hard_sigmoid, 1.0 / 6, 0.5}, {x}},
                                         {"", Pointwise{Function::hard_swish}, {x}},
                                         {"", Pointwise{Function::silu}, {x}},
                                         {"", Binary{BinaryFunction::multiply}, {x, {2, 4, 1, 1}}},
                                         {"", ScaleShift{}, {x}},
                                         {"", PRelu{}, {x}},
                                         {"", Reduce{ReduceBy::max, true, false, false}, {x}},
                                         {"", Pad{.before = 0, .after = 1}, {x}},
                                         {"", Resize{.to = 6}, {x}},
                                         {"", Concat{Axis::row}, {x, x}},
                                         {"", Slice{.axis = Axis::row, .first = 1, .count = 1}, {x}},
                                         {"", channel_shuffle(x, 2), {x}},
                                         {"", GroupNorm{.groups = 2}, {x}},
                                         {"", LayerNorm{}, {x}}}) {
    INFO(to_string(c));
    CHECK(on.backend.takes_pitch(spec_of(on, c, {.dtype = DType::f32})));
    CHECK_FALSE(on.backend.takes_pitch(spec_of(on, c, {.dtype = DType::f32, .layout = Layout::nhwc})));
  }
}

TEST_CASE("cudnn: nhwc tensors with pixels are refused where our kernels compute") {
  FakeBackend on;
  const Conditions nhwc{.dtype = DType::f32, .layout = Layout::nhwc};
  const auto takes = [&](const Op& op, const std::vector<Shape>& x) {
    return !throws<Unsupported>([&] { on.backend.lower(spec_of(on, {"", op, x}, nhwc), {}); });
  };
  CHECK(takes(SoftmaxCrossEntropy{}, {{2, 3, 1, 1}, {2, 1, 1, 1}}));
  CHECK_FALSE(takes(SoftmaxCrossEntropy{}, {{2, 3, 2, 1}, {2, 1, 2, 1}}));
  CHECK(takes(SigmoidCrossEntropy{}, {{2, 3, 1, 1}, {2, 3, 1, 1}}));
  CHECK_FALSE(takes(SigmoidCrossEntropy{}, {{2, 3, 1, 2}, {2, 3, 1, 2}}));
  CHECK(takes(Embedding{.vocabulary = 3, .features = 2}, {{2, 1, 1, 1}}));
  CHECK_FALSE(takes(Embedding{.vocabulary = 3, .features = 2}, {{2, 1, 4, 1}}));
  for (const Op& op : {Op{Pointwise{Function::clip, 0, 6}}, Op{Pointwise{Function::hard_sigmoid, 1.0 / 6, 0.5}},
                       Op{Pointwise{Function::hard_swish}}, Op{Pointwise{Function::silu}}})
    CHECK(takes(op, {{2, 3, 2, 2}}));
  CHECK(takes(Binary{BinaryFunction::multiply}, {{2, 3, 2, 2}, {2, 3, 2, 2}}));
  CHECK_FALSE(takes(Binary{BinaryFunction::multiply}, {{2, 3, 2, 2}, {2, 3, 1, 1}}));
  CHECK_FALSE(takes(Binary{BinaryFunction::multiply}, {{2, 3, 1, 1}, {2, 3, 2, 2}}));
  CHECK(takes(Binary{BinaryFunction::multiply}, {{2, 3, 1, 1}, {2, 1, 1, 1}}));
  CHECK(takes(ScaleShift{.by_channel = false}, {{2, 3, 2, 2}}));
  CHECK(takes(ScaleShift{}, {{2, 3, 1, 1}}));
  CHECK_FALSE(takes(ScaleShift{}, {{2, 3, 2, 2}}));
  for (const Op& op : {Op{GroupNorm{.groups = 3}}, Op{LayerNorm{}}}) {
    CHECK(takes(op, {{2, 3, 1, 1}}));
    CHECK_FALSE(takes(op, {{2, 3, 1, 2}}));
  }
  CHECK(takes(channel_shuffle({2, 3, 1, 1}, 3), {{2, 3, 1, 1}}));
  CHECK_FALSE(takes(channel_shuffle({2, 3, 1, 2}, 3), {{2, 3, 1, 2}}));
  CHECK_FALSE(takes(Pad{.before = 0, .after = 1}, {{2, 3, 1, 1}}));
  CHECK_FALSE(takes(Resize{.to = 2}, {{2, 3, 1, 1}}));
  CHECK_FALSE(takes(Concat{Axis::row}, {{2, 3, 1, 1}, {2, 3, 1, 1}}));
}

TEST_CASE("cudnn: each of the six workloads can be planned, run and updated, in halves, too") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const Workload& each : workloads()) {
      INFO(each.name << " in " << to_string(dtype));
      const PreparedWorkload ready = prepare(each, {.share = 0.0005, .width_divisor = 16, .batch = 2});
      FakeBackend on;
      Plan plan(ready.graph, on.backend, {.dtype = dtype, .optimiser = ready.options.optimiser});
      const int made = on.fake.made, allocations = on.log.device.allocations;
      plan.forward();
      plan.backward();
      plan.update(0.1);
      CHECK(on.log.updates.size() == 1);
      CHECK(on.log.device.allocations == allocations);
      if (each.name.find("lstm") == std::string_view::npos) CHECK(on.fake.made == made);
      const Plan inference(ready.graph, on.backend, {.mode = Mode::inference, .dtype = dtype});
    }
}

#endif
