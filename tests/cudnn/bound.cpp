// A unit that is lowered and bound on a fake cuDNN.

#include "tests/cudnn/bound.h"

#include "tests/support/catch.h"

namespace lamina::test {

BoundUnit::BoundUnit(FakeBackend& on, const Spec& spec, const Choice& choice)
    : lowered(on.backend.lower(spec, choice)), fake_(on.fake) {
  on.backend.device();
  fake_.double_factors = spec.y.dtype == DType::f64;
  args = bind_unit(spec, lowered, *this);
  fake_.forget();
}

std::vector<std::string> BoundUnit::run(Pass pass) {
  fake_.forget();
  for (const Lowered::Step& step : lowered.steps)
    if (step.covers(pass)) step.kernel->run(args);
  return fake_.calls;
}

Tensor BoundUnit::tensor(Operand operand, std::size_t i, const TensorSpec& spec, std::int64_t pitch) {
  constexpr const char* names[] = {"x", "dx", "w", "dw", "state", "y", "dy"};
  const bool one = operand == Operand::y || operand == Operand::dy;
  const std::string name = names[static_cast<std::size_t>(operand)] + (one ? "" : std::to_string(i));
  const std::int64_t steps = spec.layout == Layout::nchw ? spec.shape.n : spec.shape.n * spec.shape.plane();
  return {lend(name, static_cast<std::size_t>(steps * pitch) * size_of(spec.dtype)), spec.shape, spec.dtype,
          spec.layout, pitch};
}

void* BoundUnit::block(Block block, std::size_t bytes) {
  constexpr const char* names[] = {"saved", "scratch", "prepared", "workspace"};
  return lend(names[static_cast<std::size_t>(block)], bytes);
}

void* BoundUnit::lend(const std::string& name, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  memory_.push_back(std::make_unique<double[]>(bytes / sizeof(double) + 1));
  fake_.name(memory_.back().get(), name);
  return memory_.back().get();
}

void put(FakeBackend& on, const Tensor& tensor, const std::vector<double>& values) {
  write(on.log.device, tensor, values);
}

std::vector<double> get(FakeBackend& on, const Tensor& tensor) { return read(on.log.device, tensor); }

Spec spec_of(const FakeBackend& on, const Case& c, const Conditions& conditions) {
  const auto spec = make_spec(on.backend, c, conditions);
  REQUIRE(spec.has_value());
  return *spec;
}

std::vector<std::string> taken(FakeBackend& on, const Spec& spec, const Choice& choice) {
  std::vector<std::string> names;
  for (const Lowered::Step& step : on.backend.lower(spec, choice).steps) names.push_back(step.algorithm);
  return names;
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
      {"", Recurrent{.hidden = 3}, {{2, 4, 5, 1}}},
      {"", Recurrent{.hidden = 3, .steps = Steps::last, .reverse = true}, {{2, 4, 5, 1}}},
      {"", Recurrent{.hidden = 3, .vocabulary = 6}, {{2, 1, 5, 1}}},
      {"", Softmax{}, {{2, 4, 1, 1}}},
      {"", Add{}, {{1, 2, 3, 3}, {1, 2, 3, 3}, {1, 2, 3, 3}}},
  };
  return all;
}

}  // namespace lamina::test
