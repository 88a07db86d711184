// Runs a network of the zoo on given weights, images and output gradients, and writes all results.
//
// usage: torch_dump NET training|inference f64|f32|f16|bf16 WEIGHTS IN OUT
//
// NET may be an ONNX file; its weights are used if WEIGHTS is the same file.
// IN holds "x" and, for training, "dy". OUT gets "y" and, for training, "dx", "gradient.<parameter>", "state.<name>".

#include <algorithm>
#include <cstddef>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "lamina/lamina.h"

namespace {

lamina::HostTensor downloaded(lamina::Device& device, const lamina::Tensor& tensor) {
  const lamina::Shape& shape = tensor.shape;
  lamina::HostTensor host{.dtype = lamina::is_half(tensor.dtype) ? lamina::DType::f32 : tensor.dtype,
                          .extents = {shape.n, shape.c, shape.h, shape.w},
                          .values = std::vector<double>(static_cast<std::size_t>(shape.count()))};
  lamina::download(device, host.values, tensor);
  return host;
}

const lamina::HostTensor& entry(const lamina::TensorFile& file, const std::string& name) {
  const auto found = file.find(name);
  if (found == file.end()) throw lamina::FileError("the input file has no tensor '" + name + "'");
  return found->second;
}

lamina::Graph build(const std::string& net, const lamina::HostTensor& x) {
  if (x.extents.size() != 4) throw lamina::FileError("tensor 'x' of the input file must have four extents");
  if (net.ends_with(".onnx")) return lamina::read_onnx(net, {.batch = static_cast<int>(x.extents[0])}).graph;
  return lamina::nets::build(net, {.batch = static_cast<int>(x.extents[0]),
                                   .image = static_cast<int>(x.extents[2]),
                                   .dropout = false,
                                   .softmax = false});
}

lamina::TensorFile run(const std::string& net, const lamina::Options& options, const std::string& weights,
                       const std::string& in) {
  const lamina::TensorFile given = lamina::read_safetensors(in);
  const auto backend = lamina::make_backend("eigen");
  lamina::Device& device = backend->device();
  lamina::Plan plan(build(net, entry(given, "x")), *backend, options);
  const bool of_model = weights.ends_with(".onnx");
  lamina::load_weights(plan, of_model ? lamina::read_onnx(weights).weights : lamina::read_safetensors(weights),
                       weights);
  lamina::upload(device, plan.input(), entry(given, "x").values);
  plan.forward();
  lamina::TensorFile out;
  out["y"] = downloaded(device, plan.output());
  if (options.mode == lamina::Mode::inference) return out;

  lamina::upload(device, plan.output_gradient(), entry(given, "dy").values);
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
  const auto types = {lamina::DType::f64, lamina::DType::f32, lamina::DType::f16, lamina::DType::bf16};
  const auto type = std::find_if(types.begin(), types.end(),
                                 [&](lamina::DType dtype) { return modes && words[2] == lamina::to_string(dtype); });
  if (type == types.end()) {
    std::cerr << "usage: torch_dump NET training|inference f64|f32|f16|bf16 WEIGHTS IN OUT\n";
    return 2;
  }
  try {
    lamina::Options options;
    options.mode = words[1] == "training" ? lamina::Mode::training : lamina::Mode::inference;
    options.dtype = *type;
    options.input_gradient = options.mode == lamina::Mode::training;
    lamina::write_safetensors(words[5], run(words[0], options, words[3], words[4]));
  } catch (const std::exception& error) {
    std::cerr << "torch_dump: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
