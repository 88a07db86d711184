// Runs a network of the zoo on given weights, images and output gradients, and writes all results.
//
// usage: torch_dump NET training|inference f64|f32|f16|bf16 WEIGHTS IN OUT
//
// NET may be an ONNX file. WEIGHTS is a safetensors file, or an ONNX file whose weights are used.
// IN has "x" and, for training, "dy". OUT gets "y" and, for training, "dx", "gradient.<parameter>", "state.<name>".

#include <algorithm>
#include <cstddef>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "lamina/lamina.h"

using namespace lamina;

namespace {

HostTensor downloaded(Device& device, const Tensor& tensor) {
  const Shape& shape = tensor.shape;
  HostTensor host{.dtype = is_half(tensor.dtype) ? DType::f32 : tensor.dtype,
                  .extents = {shape.n, shape.c, shape.h, shape.w},
                  .values = std::vector<double>(static_cast<std::size_t>(shape.count()))};
  download(device, host.values, tensor);
  return host;
}

Graph build(const std::string& net, const HostTensor& x) {
  if (net.ends_with(".onnx")) return read_onnx(net, {.batch = static_cast<int>(x.extents[0])}).graph;
  return nets::build(net, {.batch = static_cast<int>(x.extents[0]),
                           .image = static_cast<int>(x.extents[2]),
                           .dropout = false,
                           .softmax = false});
}

TensorFile run(const std::string& net, const Options& options, const std::string& weights, const std::string& in) {
  const TensorFile given = read_safetensors(in);
  const auto backend = make_backend("eigen");
  Device& device = backend->device();
  Plan plan(build(net, given.at("x")), *backend, options);
  const bool of_model = weights.ends_with(".onnx");
  load_weights(plan, of_model ? read_onnx(weights).weights : read_safetensors(weights), weights);
  upload(device, plan.input(), given.at("x").values);
  plan.forward();
  TensorFile out;
  out["y"] = downloaded(device, plan.output());
  if (options.mode == Mode::inference) return out;

  upload(device, plan.output_gradient(), given.at("dy").values);
  plan.backward();
  out["dx"] = downloaded(device, plan.input_gradient());
  for (const std::string& name : plan.parameter_names())
    out["gradient." + name] = downloaded(device, plan.parameter_gradient(name));
  for (const std::string& name : plan.state_names()) out["state." + name] = downloaded(device, plan.state(name));
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool modes = words.size() == 6 && (words[1] == "training" || words[1] == "inference");
  const auto types = {DType::f64, DType::f32, DType::f16, DType::bf16};
  const auto type =
      std::find_if(types.begin(), types.end(), [&](DType dtype) { return modes && words[2] == to_string(dtype); });
  if (type == types.end()) {
    std::cerr << "usage: torch_dump NET training|inference f64|f32|f16|bf16 WEIGHTS IN OUT\n";
    return 2;
  }
  try {
    Options options;
    options.mode = words[1] == "training" ? Mode::training : Mode::inference;
    options.dtype = *type;
    options.input_gradient = options.mode == Mode::training;
    write_safetensors(words[5], run(words[0], options, words[3], words[4]));
  } catch (const std::exception& error) {
    std::cerr << "torch_dump: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
