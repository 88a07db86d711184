// Prints the outputs, gradients and statistics of three small networks in f64, one number a line. tests/cross/run
// compares the numbers of builds for two processors.

#include <cstdio>
#include <string>
#include <vector>

#include "lamina/core.h"
#include "lamina/nets.h"

namespace {

using namespace lamina;

void print(const std::string& name, Device& device, const Tensor& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.shape.count()));
  download(device, std::span<double>(values), tensor);
  for (const double value : values) std::printf("%s %.17g\n", name.c_str(), value);
}

/// A network with ops that the other two networks lack: depthwise and grouped convolutions, and functions other than
/// ReLU.
Graph of_today() {
  Graph graph("of_today");
  Value x = graph.input({2, 3, 20, 20});
  x = silu(batch_norm(conv(x, "stem", {.channels = 16, .kernel = 3, .stride = 2, .pad = 1, .bias = false}), "norm"));
  x = hard_swish(conv(x, "depthwise", {.channels = 16, .kernel = 5, .pad = 2, .groups = 16}));
  x = clip(conv(x, "grouped", {.channels = 32, .kernel = 3, .pad = 1, .groups = 4}), "clip", 0, 6);
  fully_connected(global_average_pool(sigmoid(x)), "head", {.outputs = 7});
  return graph;
}

}  // namespace

int main() {
  const auto eigen = make_backend("eigen", {.threads = 2});
  const nets::Options narrow{.batch = 2, .image = 64, .classes = 7, .width_divisor = 8, .dropout = false};
  for (const Graph& graph : {nets::build("resnet18", narrow), nets::build("inception_v1", narrow), of_today()}) {
    Plan plan(graph, *eigen, {.dtype = DType::f64, .input_gradient = true});
    plan.forward();
    plan.backward();
    const auto name = [&](const std::string& of) { return graph.name() + "/" + of; };
    print(name("output"), eigen->device(), plan.output());
    print(name("input gradient"), eigen->device(), plan.input_gradient());
    for (const std::string& parameter : plan.parameter_names())
      print(name(parameter), eigen->device(), plan.parameter_gradient(parameter));
    for (const std::string& state : plan.state_names()) print(name(state), eigen->device(), plan.state(state));
  }
}
