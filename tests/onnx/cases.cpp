// Reads and runs ONNX models, or writes a network of the zoo, for the scripts of this folder.
// usage: onnx_cases run MODEL IN OUT f32|f64 [BATCH [OUTPUT]]  IN has tensors by the names of inputs; "constant:NAME"
//                                                              makes an input a constant. OUT gets the output "y".
//        onnx_cases refusal MODEL [all]                        reads the model; "all" prints a line for each node
//        onnx_cases zoo                                        prints the zoo's names
//        onnx_cases write NET FILE                             writes a network with random weights
// Status 1: the model failed; a text says why. Status 3: the model is refused.

#include <cmath>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "lamina/lamina.h"
#include "lib/onnx/importer.h"

using namespace lamina;

namespace {

/// The output in the file's order of elements. The output of a graph of one node is its input.
HostTensor output_of(OnnxModel& model, const TensorFile& inputs, DType dtype) {
  HostTensor y{.dtype = DType::f64, .extents = model.output.extents, .values = {}};
  if (model.graph.nodes().size() == 1) {
    y.values = from_graph(model.output, to_graph(model.inputs[0], inputs.at(model.inputs[0].name).values));
    return y;
  }
  const auto backend = make_backend("eigen");
  Plan plan(model.graph, *backend, {.mode = Mode::inference, .dtype = dtype});
  load_weights(plan, model.weights);
  for (const OnnxValue& input : model.inputs)
    upload(backend->device(), plan.input(input.node), to_graph(input, inputs.at(input.name).values));
  plan.forward();
  y.values.resize(static_cast<std::size_t>(plan.output().shape.count()));
  download(backend->device(), y.values, plan.output());
  y.values = from_graph(model.output, y.values);
  return y;
}

HostTensor run(const std::string& path, const TensorFile& inputs, DType dtype, OnnxOptions options) {
  for (const auto& [name, tensor] : inputs)
    if (name.starts_with("constant:")) options.constants[name.substr(9)] = tensor;
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const onnx::ModelMessage message = onnx::decode_model(bytes, path);
  auto result = onnx::Importer(message, options, path).run_or_fold();
  if (auto* model = std::get_if<OnnxModel>(&result)) return output_of(*model, inputs, dtype);
  // The output is a constant: the result of folding, or the mask of a Dropout that drops nothing.
  const auto& constant = std::get<onnx::Constant>(result);
  HostTensor y{.dtype = DType::f64, .extents = constant.extents, .values = {}};
  for (std::int64_t i = 0; i < constant.count(); ++i) y.values.push_back(constant.at(i));
  return y;
}

/// Writes a network with the initial weights of a plan, and running statistics other than 0 and 1.
void write_network(const std::string& net, const std::string& file) {
  const auto backend = make_backend("eigen");
  const Graph graph = nets::build(net, {.batch = 2, .softmax = false});
  Plan plan(graph, *backend, {.mode = Mode::inference});
  TensorFile weights = save_weights(plan);
  for (auto& [name, tensor] : weights) {
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      const double wave = std::sin(static_cast<double>(i));
      if (name.ends_with(".running_mean")) tensor.values[i] = static_cast<float>(0.1 * wave);
      if (name.ends_with(".running_var")) tensor.values[i] = static_cast<float>(1 + 0.5 * wave);
    }
  }
  write_onnx(file, graph, weights);
}

void obey(const std::vector<std::string>& words) {
  const std::string& verb = words.at(0);
  if (verb == "zoo") {
    for (const nets::Info& info : nets::list()) std::printf("%s\n", std::string(info.name).c_str());
  } else if (verb == "write") {
    write_network(words.at(1), words.at(2));
  } else if (verb == "refusal") {
    read_onnx(words.at(1), {.all_refusals = words.size() > 2});
  } else {
    const OnnxOptions options{.batch = words.size() > 5 ? std::stoi(words[5]) : 0,
                              .output = words.size() > 6 ? words[6] : ""};
    const DType dtype = words.at(4) == "f64" ? DType::f64 : DType::f32;
    write_safetensors(words.at(3), {{"y", run(words.at(1), read_safetensors(words.at(2)), dtype, options)}});
  }
}

}  // namespace

int main(int count, char** arguments) {
  try {
    obey({arguments + 1, arguments + count});
  } catch (const Unsupported& refused) {
    std::fprintf(stderr, "%s\n", refused.what());
    return 3;
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "%s\n", failed.what());
    return 1;
  }
  return 0;
}
