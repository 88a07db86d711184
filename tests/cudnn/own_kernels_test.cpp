// Ops that cuDNN lacks, on a fake cuDNN. The kernels of the backend cuda compute them, here on the host.

#include "kernels/host/grid.h"
#include "lamina/plan.h"
#include "lamina/random.h"
#include "lamina/workloads.h"
#include "tests/cudnn/bound.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

#if defined(LAMINA_CUDA_ON_HOST)

namespace {

constexpr Shape map_of_file{2, 4, 3, 3};
const std::vector<Case> ops_of_files = {{"", Pointwise{Function::clip, 0, 6}, {map_of_file}},
                                        {"", Pointwise{Function::hard_sigmoid, 1.0 / 6, 0.5}, {map_of_file}},
                                        {"", Pointwise{Function::hard_swish}, {map_of_file}},
                                        {"", Pointwise{Function::silu}, {map_of_file}},
                                        {"", Binary{BinaryFunction::multiply}, {map_of_file, {2, 4, 1, 1}}},
                                        {"", ScaleShift{}, {map_of_file}},
                                        {"", PRelu{}, {map_of_file}},
                                        {"", Reduce{ReduceBy::max, true, false, false}, {map_of_file}},
                                        {"", Pad{.before = 0, .after = 1}, {map_of_file}},
                                        {"", Resize{.to = 6}, {map_of_file}},
                                        {"", Concat{Axis::row}, {map_of_file, map_of_file}},
                                        {"", Slice{.axis = Axis::row, .first = 1, .count = 1}, {map_of_file}},
                                        {"", channel_shuffle(map_of_file, 2), {map_of_file}},
                                        {"", GroupNorm{.groups = 2}, {map_of_file}},
                                        {"", LayerNorm{}, {map_of_file}}};

/// Runs `work`. Returns the number of kernels that it launches.
template <class Work>
std::uint64_t launches_of(const Work& work) {
  const auto count = [] {
    std::uint64_t all = 0;
    for (const auto& [name, times] : lamina::cuda_host::host::kernels_run()) all += times;
    return all;
  };
  const std::uint64_t before = count();
  work();
  return count() - before;
}

}  // namespace

TEST_CASE("cudnn: dropout draws the mask of our own kernel, and each training pass advances its step") {
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
  CHECK(on.log.calls.empty());  // halves are not converted
  unit.args.dx[0] = {};
  CHECK(launches_of([&] { unit.run(Pass::backward_data); }) == 0);

  BoundUnit inference(on, spec_of(on, {"", c.op, c.x, {}, Mode::inference}, {.dtype = dtype}));
  put(on, inference.args.x[0], std::vector<double>(24, 3));
  CHECK(inference.run(Pass::forward).empty());
  CHECK(get(on, inference.args.y) == std::vector<double>(24, 3));
  inference.args.y = inference.args.x[0];
  CHECK(launches_of([&] { inference.run(Pass::forward); }) == 0);
}

TEST_CASE("cudnn: a concat copies each input to its channels of y, unless the input is already there") {
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
  CHECK(launches_of(forward) == 2);
  CHECK(get(on, unit.args.y) == joined);
  CHECK(launches_of(backward) == 2);
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
  CHECK(launches_of(forward) == 0);
  CHECK(launches_of(backward) == 0);
  unit.args.dx[0] = {};
  unit.args.dx[1].data = nullptr;
  CHECK(launches_of(backward) == 0);
}

TEST_CASE("cudnn: a slice copies its channels, and the other channels' gradients are 0, or old values if it adds") {
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
  CHECK(launches_of(forward) == 1);
  CHECK(get(on, unit.args.y) == part);
  CHECK(launches_of(backward) == 3);
  CHECK(get(on, unit.args.dx[0]) == spread);
  const int apart = layout == Layout::nchw ? 2 : 1;
  unit.args.dy.data = unit.args.dx[0].as<float>() + apart;
  unit.args.y.data = unit.args.x[0].as<float>() + apart;
  unit.args.dy.pitch = unit.args.y.pitch = unit.args.x[0].pitch;
  CHECK(launches_of(forward) == 0);
  CHECK(launches_of(backward) == 2);
  CHECK(get(on, unit.args.dx[0]) == spread);
  unit.args.dx[0] = {};
  CHECK(launches_of(backward) == 0);

  BoundUnit adds(on, spec_of(on, c, {.dtype = DType::f32, .layout = layout, .adds = true}));
  put(on, adds.args.dy, part);
  put(on, adds.args.dx[0], x);
  CHECK(adds.run(Pass::backward_data).empty());
  CHECK(get(on, adds.args.dx[0]) == std::vector<double>{1, 2, 6, 8, 5, 6, 7, 8, 18, 20, 11, 12});
  BoundUnit all(on, spec_of(on, {"", Slice{.first = 0, .count = 3}, c.x}));
  CHECK(launches_of([&] { all.run(Pass::backward_data); }) == 1);
}

TEST_CASE("cudnn: ops that the library lacks have the same bits as our own kernels, and make no call of the library") {
  std::vector<Case> all = ops_of_files;
  all.push_back({"", SoftmaxCrossEntropy{}, {{2, 3, 1, 1}, {2, 1, 1, 1}}});
  all.push_back({"", SigmoidCrossEntropy{}, {{2, 1, 1, 1}, {2, 1, 1, 1}}});
  all.push_back({"", Embedding{.vocabulary = 3, .features = 2}, {{1, 1, 3, 1}}});
  const auto kernels = make_backend("cuda-host");
  std::set<std::string> in_nhwc;
  for (const Case& c : all)
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
      for (const Layout layout : {Layout::nchw, Layout::nhwc})
        for (const bool adds : {false, true}) {
          FakeBackend on;
          const Spec spec = spec_of(on, c, {.dtype = dtype, .layout = layout, .adds = adds});
          INFO(to_string(spec));
          if (layout == Layout::nhwc && throws<Unsupported>([&] { on.backend.lower(spec, {}); })) continue;
          if (layout == Layout::nhwc) in_nhwc.insert(std::string(op_name(c.op)) + " " + std::string(to_string(dtype)));
          on.backend.device();
          on.fake.forget();
          const Feed feed = make_feed(c, 1, Fill::normal, dtype);
          CHECK((run_unit(on.backend, spec, {}, feed) == run_unit(*kernels, spec, {}, feed)));
          CHECK(on.fake.calls.empty());
        }
  std::set<std::string> wanted_in_nhwc;
  for (const std::string op :
       {"clip", "hard_sigmoid", "hard_swish", "silu", "softmax_cross_entropy", "sigmoid_cross_entropy"})
    for (const char* const type : {" f32", " f16", " bf16"}) wanted_in_nhwc.insert(op + type);
  CHECK(in_nhwc == wanted_in_nhwc);
}

TEST_CASE("cudnn: ops that networks from ONNX files need accept gaps between images in nchw") {
  const FakeBackend on;
  for (const Case& c : ops_of_files) {
    INFO(to_string(c));
    CHECK(on.backend.takes_pitch(spec_of(on, c, {.dtype = DType::f32})));
    CHECK_FALSE(on.backend.takes_pitch(spec_of(on, c, {.dtype = DType::f32, .layout = Layout::nhwc})));
  }
}

TEST_CASE("cudnn: ops of our own kernels refuse nhwc tensors of more than one pixel") {
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

TEST_CASE("cudnn: each of the six workloads can be planned, run and updated, also in half precision") {
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
