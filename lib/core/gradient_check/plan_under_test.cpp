#include "plan_under_test.h"

#include <span>
#include <variant>

namespace lamina::planner {

std::vector<double> read_values(Device& device, const Tensor& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.shape.count()));
  download(device, std::span<double>(values), tensor);
  return values;
}

PlanUnderTest::PlanUnderTest(const Graph& graph, Backend& backend, const Options& options, const GradientCheck& how)
    : device_(backend.device()), plan_(graph, backend, options) {
  if (how.start) how.start(plan_);
  for (const std::string& name : plan_.state_names()) {
    const Tensor tensor = plan_.state(name);
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.shape.count()) * size_of(tensor.dtype));
    device_.download(bytes.data(), tensor.data, bytes.size());
    state_.emplace_back(name, std::move(bytes));
  }
  if (!options.fuse && options.keep_values && options.keep == Keep::all) return;
  Options plain = options;
  plain.fuse = false;
  plain.keep_values = true;
  plain.keep = Keep::all;
  plain.input_gradient = false;
  twin_ = std::make_unique<Plan>(graph, backend, plain);
  if (how.start) how.start(*twin_);
}

void PlanUnderTest::set(const std::string& name, bool is_input, const std::vector<double>& values) {
  for (Plan* const plan : {&plan_, twin_.get()})
    if (plan != nullptr)
      upload(device_, is_input ? plan->input(name) : plan->parameter(name), std::span<const double>(values));
}

Kinks PlanUnderTest::kinks() {
  Plan& plan = twin_ ? *twin_ : plan_;
  run(plan);
  Kinks kinks;
  if (plan.output().dtype == DType::f32) kinks.tie = 4e-6;
  const std::vector<Node>& nodes = plan_.graph().nodes();
  for (const Node& node : nodes)
    kinks.add(node.op, input_shapes(plan_.graph(), node), node.shape, [&](std::size_t input) {
      const Node& from = nodes[static_cast<std::size_t>(node.inputs[input])];
      return read_values(device_,
                         std::holds_alternative<Input>(from.op) ? plan.input(from.name) : plan.value(from.name));
    });
  return kinks;
}

void PlanUnderTest::run(Plan& plan) {
  for (const auto& [name, bytes] : state_) device_.upload(plan.state(name).data, bytes.data(), bytes.size());
  plan.parameters_changed();
  plan.forward();
}

}  // namespace lamina::planner
