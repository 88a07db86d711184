// Whole networks, narrow and small, on cuda-host or on the backend in LAMINA_TEST_BACKEND. In f64, forward and backward
// are compared with eigen. In f32 each op is compared alone, with inputs from the f64 run.

#include "lamina/lamina.h"
#include "tests/support/cases/plans.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

constexpr double bound = 1e-9;  // relative to the tensor's largest number
// Tolerance, as a share of the largest gradient or statistic. A gradient that is mathematically 0 has only rounding
// errors, for example the gradient of a shift before a batch norm.
constexpr double noise = 64 * 0x1p-52;

std::shared_ptr<Backend> kernels_backend() { return make_or_skip(tested_backend("cuda-host")); }

void check_equal(const std::string& what, const Values& got, const Values& want, double scale = 0) {
  const double gap = largest_gap(got, want);
  INFO(what << ": " << gap << " of " << largest_of(want));
  CHECK(gap <= bound * largest_of(want) + noise * scale);
}

/// The network, narrow and with its smallest image. Some networks have no ReLU after each batch norm. With maps of one
/// pixel all their gradients would be 0, because the batch norm of two numbers is constant. So their last maps have 2x2
/// pixels.
Graph small(const nets::Info& info) {
  const bool linear = info.name == "mobilenet_v2" || info.name == "efficientnet_b0" || info.name == "darknet53";
  const int image = linear ? 33 : info.smallest_image;
  return nets::build(info.name, {.batch = 2, .image = image, .classes = 5, .width_divisor = 16});
}

/// Runs the network on both backends, and compares outputs, gradients and statistics.
void compare(const nets::Info& info) {
  INFO(info.name);
  const Graph graph = small(info);
  const Options options{.dtype = DType::f64, .input_gradient = true};
  const auto eigen = make_backend("eigen"), host = kernels_backend();
  Plan want(graph, *eigen, options), got(graph, *host, options);
  for (Plan* plan : {&want, &got}) run_passes(*plan);
  const auto both = [&](const std::string& what, const Tensor& a, const Tensor& b, double scale = 0) {
    check_equal(what, read(got, a), read(want, b), scale);
  };
  double largest = 0;
  for (const std::string& name : want.parameter_names())
    largest = std::max(largest, largest_of(read(want, want.parameter_gradient(name))));
  both("output", got.output(), want.output());
  both("input gradient", got.input_gradient(), want.input_gradient(), largest);
  for (const std::string& name : want.parameter_names())
    both("gradient of " + name, got.parameter_gradient(name), want.parameter_gradient(name), largest);
  // Some means are mathematically 0 (a linear function of normalised numbers), so they are only rounding errors.
  largest = 0;
  for (const std::string& name : want.state_names())
    if (want.state(name).dtype == DType::f64) largest = std::max(largest, largest_of(read(want, want.state(name))));
  for (const std::string& name : want.state_names())
    if (want.state(name).dtype == DType::f64) both("state " + name, got.state(name), want.state(name), largest);
}

/// Compares outputs in inference. The kernels' backend runs fused units, and eigen runs single ops.
void compare_inference(const nets::Info& info) {
  INFO(info.name);
  const Graph graph = small(info);
  Options options{.mode = Mode::inference, .dtype = DType::f64};
  const auto eigen = make_backend("eigen"), host = kernels_backend();
  Plan got(graph, *host, options);
  options.fuse = false;
  Plan want(graph, *eigen, options);
  for (Plan* plan : {&want, &got}) {
    set_statistics(*plan);
    plan->forward();
  }
  check_equal("output", read(got, got.output()), read(want, want.output()));
}

Tensor parameter_of(const Plan& plan, const Node& node, std::size_t i) {
  const std::string name = node.name + "." + std::string(parameter_names(node.op)[i]);
  return node.fixed[i] ? plan.state(name) : plan.parameter(name);
}

/// Checks every op of the network that is not yet in `seen`, with its inputs from the f64 run.
void check_ops(const nets::Info& info, std::set<std::string>& seen) {
  const Graph graph = small(info);
  const auto host = kernels_backend();
  Plan plan(graph, oracle(), {.dtype = DType::f64, .fuse = false, .keep_values = true, .input_gradient = true});
  run_passes(plan);
  // The inputs are rounded to f32, so that both sides have the same ties and signs.
  const auto in_f32 = [&](const Tensor& tensor) { return rounded(read(plan, tensor), DType::f32); };
  for (const Node& node : graph.nodes()) {
    if (node.inputs.empty()) continue;
    Case c{node.name, node.op, {}};
    for (const int input : node.inputs) c.x.push_back(graph.nodes()[static_cast<std::size_t>(input)].shape);
    const std::string text = to_string(c).substr(node.name.size());
    if (!plan.gradient(node.name) || !seen.insert(text).second) continue;
    INFO(info.name << ": " << to_string(c));
    Feed feed = make_feed(c, 1);
    for (std::size_t i = 0; i < c.x.size(); ++i)
      feed.x[i] = in_f32(plan.value(graph.nodes()[static_cast<std::size_t>(node.inputs[i])].name));
    for (std::size_t i = 0; i < node.params.size(); ++i) feed.w[i] = in_f32(parameter_of(plan, node, i));
    feed.dy = in_f32(plan.gradient(node.name));
    const Spec spec = *make_spec(*host, c, {.dtype = DType::f32});
    const Result want = reference(c, feed), got = run_unit(*host, spec, {}, feed);
    const Bounds bounds = chain_bounds(c, feed, algorithms_of(*host, spec, {}));
    check_result(got, want, bounds, epsilon(DType::f32));
  }
}

}  // namespace

TEST_CASE("every network agrees with eigen in f64 on cuda-host", "[networks]") {
  for (const nets::Info& info : nets::list()) DYNAMIC_SECTION(info.name) {
      compare(info);
    }
}

TEST_CASE("every network agrees in inference with eigen's single ops in f64 on cuda-host", "[networks]") {
  for (const nets::Info& info : nets::list()) DYNAMIC_SECTION(info.name) {
      compare_inference(info);
    }
}

TEST_CASE("every op of every network keeps its error bound in f32 on cuda-host, with inputs of the f64 run",
          "[networks]") {
  std::set<std::string> seen;
  for (const nets::Info& info : nets::list()) check_ops(info, seen);
  CHECK(seen.size() > 100);
}
