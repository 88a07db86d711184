// A unit lowered on a fake.

#include "cudnn/bound.h"

#include <algorithm>

#include "support/catch.h"

namespace lamina::test {

BoundUnit::BoundUnit(FakeBackend& on, const Spec& spec, const Choice& choice)
    : lowered(on.backend.lower(spec, choice)), fake_(on.fake) {
  on.backend.device();
  fake_.double_factors = spec.y.dtype == DType::f64;
  const bool training = spec.mode == Mode::training;
  for (std::size_t i = 0; i < spec.x.size(); ++i) {
    const std::string number = std::to_string(i);
    args.x.push_back(lend("x" + number, spec.x[i], spec.x[i].pitch));
    const bool wants = training && spec.wants_dx[i];
    args.dx.push_back(wants ? lend("dx" + number, spec.x[i], spec.x[i].gradient_pitch) : Tensor{});
  }
  for (std::size_t i = 0; i < spec.w.size(); ++i) {
    args.w.push_back(lend("w" + std::to_string(i), spec.w[i], spec.w[i].pitch));
    args.dw.push_back(training ? lend("dw" + std::to_string(i), spec.w[i], spec.w[i].pitch) : Tensor{});
  }
  for (std::size_t i = 0; i < spec.state.size(); ++i)
    args.state.push_back(lend("state" + std::to_string(i), spec.state[i], spec.state[i].pitch));
  args.y = lend("y", spec.y, spec.y.pitch);
  if (training) args.dy = lend("dy", spec.y, spec.y.gradient_pitch);
  args.saved = lend("saved", lowered.saved_bytes);
  args.scratch = lend("scratch", lowered.backward_bytes);
  args.prepared = lend("prepared", lowered.prepared_bytes);
  std::size_t workspace = 0;
  for (const Lowered::Step& step : lowered.steps) workspace = std::max(workspace, step.kernel->workspace_bytes());
  args.workspace = lend("workspace", workspace);
  fake_.forget();
}

std::vector<std::string> BoundUnit::run(Pass pass) {
  fake_.forget();
  for (const Lowered::Step& step : lowered.steps)
    if (step.covers(pass)) step.kernel->run(args);
  return fake_.calls;
}

void* BoundUnit::lend(const std::string& name, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  memory_.push_back(std::make_unique<double[]>(bytes / sizeof(double) + 1));
  fake_.name(memory_.back().get(), name);
  return memory_.back().get();
}

Tensor BoundUnit::lend(const std::string& name, const TensorSpec& spec, std::int64_t pitch) {
  const std::int64_t steps = spec.layout == Layout::nchw ? spec.shape.n : spec.shape.n * spec.shape.plane();
  return {lend(name, static_cast<std::size_t>(steps * pitch) * size_of(spec.dtype)), spec.shape, spec.dtype,
          spec.layout, pitch};
}

Spec spec_of(const FakeBackend& on, const Case& c, const Conditions& conditions) {
  const auto spec = make_spec(on.backend, c, conditions);
  REQUIRE(spec.has_value());
  return *spec;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"", Conv{.channels = 4, .kernel = 3, .pad = 1, .groups = 2}, {{2, 2, 5, 5}}},
      {"", Conv{.channels = 4, .kernel = 3, .bias = false}, {{2, 2, 5, 5}}},
      {"", Conv{.channels = 4, .kernel = 3}, {{2, 2, 5, 5}}, {{Relu{}}}},
      {"", Conv{.channels = 4, .kernel = 3}, {{2, 2, 5, 5}}, {{BatchNorm{}}, {Add{}}, {Relu{}}}, Mode::inference},
      {"", MaxPool{.window = 2, .stride = 2}, {{1, 2, 4, 4}}},
      {"", MaxPool{.window = 3, .stride = 2, .pad = 0, .rounding = Rounding::up}, {{1, 2, 6, 6}}},
      {"", AveragePool{.window = 2, .stride = 2}, {{1, 2, 4, 4}}},
      {"", GlobalAveragePool{}, {{1, 2, 3, 3}}},
      {"", BatchNorm{}, {{2, 2, 3, 3}}},
      {"", Lrn{}, {{1, 5, 2, 2}}},
      {"", Relu{}, {{1, 2, 3, 3}}},
      {"", FullyConnected{.outputs = 3}, {{2, 4, 1, 1}}},
      {"", Dropout{}, {{1, 2, 3, 3}}},
      {"", Softmax{}, {{2, 4, 1, 1}}},
      {"", Add{}, {{1, 2, 3, 3}, {1, 2, 3, 3}, {1, 2, 3, 3}}},
      {"", Concat{}, {{1, 2, 3, 3}, {1, 1, 3, 3}}},
      {"", Slice{.first = 1, .channels = 1}, {{1, 3, 3, 3}}},
  };
  return all;
}

}  // namespace lamina::test
