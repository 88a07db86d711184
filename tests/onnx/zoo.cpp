// A network of the zoo for tests/onnx/zoo.py: zoo NET FILE DATA. Writes the network with random weights as FILE, reads
// FILE back, and runs what it has read. DATA, a safetensors file, has x and the logits y.

#include <cmath>
#include <cstdio>
#include <string>

#include "lamina/backend.h"
#include "lamina/device.h"
#include "lamina/error.h"
#include "lamina/nets.h"
#include "lamina/onnx.h"
#include "lamina/plan.h"

using namespace lamina;

namespace {

constexpr int batch = 2;

HostTensor downloaded(Plan& plan, const Tensor& tensor) {
  const Shape& s = tensor.shape;
  HostTensor host{.dtype = DType::f32, .extents = {s.n, s.c, s.h, s.w}, .values = {}};
  host.values.resize(static_cast<std::size_t>(s.count()));
  download(plan.backend().device(), host.values, tensor);
  return host;
}

/// The weights that a plan starts with, and running statistics that are not 0 and 1.
TensorFile random_weights(const Graph& graph, const std::shared_ptr<Backend>& backend) {
  Plan plan(graph, *backend, {.mode = Mode::inference});
  TensorFile weights = save_weights(plan);
  for (auto& [name, tensor] : weights) {
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      const double wave = std::sin(static_cast<double>(i));
      if (name.ends_with(".running_mean")) tensor.values[i] = static_cast<float>(0.1 * wave);
      if (name.ends_with(".running_var")) tensor.values[i] = static_cast<float>(1 + 0.5 * wave);
    }
  }
  return weights;
}

void write(const std::string& net, const std::string& file, const std::string& data) {
  const auto backend = make_backend("eigen");
  const Graph graph = nets::build(net, {.batch = batch, .softmax = false});
  write_onnx(file, graph, random_weights(graph, backend));
  OnnxModel back = read_onnx(file, {.batch = batch});
  Plan plan(back.graph, *backend, {.mode = Mode::inference});
  load_weights(plan, back.weights);
  const HostTensor x = downloaded(plan, plan.input(back.inputs.front().node));
  plan.forward();
  write_safetensors(data, {{"x", x}, {"y", downloaded(plan, plan.output())}});
}

}  // namespace

/// Without arguments it prints the networks' names.
int main(int count, char** arguments) {
  try {
    if (count == 4) return write(arguments[1], arguments[2], arguments[3]), 0;
    for (const nets::Info& info : nets::list())
      std::printf("%.*s\n", static_cast<int>(info.name.size()), info.name.data());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
