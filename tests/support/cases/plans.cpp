// Plans for tests.

#include "tests/support/cases/plans.h"

#include "lamina/random.h"
#include "tests/support/cases/chain.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

namespace lamina::test {

Values read(const Plan& plan, const Tensor& tensor) { return read(plan.backend().device(), tensor); }

void write(const Plan& plan, const Tensor& tensor, const Values& values) {
  write(plan.backend().device(), tensor, values);
}

void copy_parameters(const Plan& from, const Plan& to) {
  for (const std::string& name : from.parameter_names())
    write(to, to.parameter(name), read(from, from.parameter(name)));
}

Values read_state(const Plan& plan, const std::string& name) {
  const Tensor tensor = plan.state(name);
  if (tensor.dtype != DType::u64) return read(plan, tensor);
  std::uint64_t word = 0;
  plan.backend().device().download(&word, tensor.data, sizeof word);
  return {static_cast<double>(word)};
}

Graph classifier(int vocabulary) {
  Graph graph("classifier");
  const Value words = embedding(graph.input({4, 1, 6, 1}, "ids"), "words", {.vocabulary = vocabulary, .features = 3});
  const Value scores = fully_connected(global_average_pool(words), "fc", {.outputs = 5});
  softmax_cross_entropy(scores, graph.input({4, 1, 1, 1}, "labels"), "loss");
  return graph;
}

void set_statistics(Plan& plan) {
  std::uint64_t key = 11;
  for (const std::string& name : plan.state_names()) {
    const Tensor tensor = plan.state(name);
    if (tensor.dtype == DType::u64) continue;
    Values values = normal(tensor.shape, ++key);
    if (name.find("running_var") != std::string::npos)
      for (double& value : values) value = value * value + 0.5;
    write(plan, tensor, values);
  }
  plan.parameters_changed();
}

void run_passes(Plan& plan) {
  plan.forward();
  if (plan.options().mode == Mode::training) plan.backward();
}

Outcome run(Plan& plan) {
  Outcome outcome;
  plan.forward();
  outcome.output = read(plan, plan.output());
  for (const std::string& name : plan.state_names()) outcome.state.push_back(read_state(plan, name));
  if (plan.options().mode == Mode::inference) return outcome;
  plan.backward();
  for (const std::string& name : plan.parameter_names()) {
    outcome.names.push_back(name);
    outcome.gradients.push_back(read(plan, plan.parameter_gradient(name)));
  }
  if (!plan.options().input_gradient) return outcome;
  for (const Node& node : plan.graph().nodes())
    if (std::holds_alternative<Input>(node.op) && plan.gradient(node.name)) {
      outcome.names.push_back(node.name);
      outcome.gradients.push_back(read(plan, plan.input_gradient(node.name)));
    }
  return outcome;
}

void check_same(const Outcome& got, const Outcome& want, double relative) {
  const auto check = [&](const std::string& what, const Values& a, const Values& b, double floor) {
    check_close(what, a, b, {Values(b.size(), std::max(largest_of(b), floor)), 1}, relative);
  };
  check("output", got.output, want.output, 0);
  double most = 0;
  for (const Values& gradient : want.gradients) most = std::max(most, largest_of(gradient));
  REQUIRE(got.gradients.size() <= want.gradients.size());
  for (std::size_t i = 0; i < got.gradients.size(); ++i) {
    REQUIRE(got.names[i] == want.names[i]);
    check("gradient of " + got.names[i], got.gradients[i], want.gradients[i], most / 1000);
  }
  REQUIRE(got.state.size() == want.state.size());
  for (std::size_t i = 0; i < got.state.size(); ++i)
    check("state " + std::to_string(i), got.state[i], want.state[i], 1);
}

Values compose(Plan& plan) {
  Device& device = plan.backend().device();
  const std::vector<Node>& nodes = plan.graph().nodes();
  std::vector<Values> values;
  for (const Node& node : nodes) {
    if (std::holds_alternative<Input>(node.op)) {
      values.push_back(read(device, plan.input(node.name)));
      continue;
    }
    Case c{node.name, node.op, {}, {}, plan.options().mode};
    if (auto* dropout = std::get_if<Dropout>(&c.op)) dropout->seed ^= hash(node.name);
    Feed feed;
    for (const int i : node.inputs) {
      c.x.push_back(nodes[static_cast<std::size_t>(i)].shape);
      feed.x.push_back(values[static_cast<std::size_t>(i)]);
    }
    for (const std::string_view part : parameter_names(node.op)) {
      if (feed.w.size() == node.params.size()) break;  // a convolution without bias has one parameter
      feed.w.push_back(read(device, plan.parameter(node.name + "." + std::string(part))));
    }
    for (const std::string_view part : state_names(node.op))
      feed.state.push_back(read_state(plan, node.name + "." + std::string(part)));
    feed.dy = zeros(node.shape);
    values.push_back(by_oracle(c, feed).y);
  }
  return values.back();
}

void check_passed(const GradientReport& report) {
  INFO(to_string(report));
  CHECK(report.passed());
}

}  // namespace lamina::test
