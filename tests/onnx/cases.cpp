// ONNX's own test cases through read_onnx and the backend eigen. Arguments: a folder with model.onnx and
// test_data_set_0, or a .onnx file with STEM_output_0.pb beside it, whose input is counted up to 1. Prints a JSON line
// for each: {"case", "result": "passed" | "refused" | "failed", "difference", "why"}. The difference is the largest, of
// the largest number. After --logits, cases pass by it, at 1e-4, and their batch is that of the input. After --refusal
// files are only read, after --refusals with a line for each node that is not. --zoo: prints the names of the zoo's
// networks. --write=NET FILE: writes one with random weights.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "lamina/backend.h"
#include "lamina/device.h"
#include "lamina/error.h"
#include "lamina/nets.h"
#include "lamina/onnx.h"
#include "lamina/plan.h"
#include "lib/onnx/importer.h"

namespace fs = std::filesystem;
using namespace lamina;

namespace {

/// The bounds of ONNX's own runner.
constexpr double relative = 1e-3, absolute = 1e-7;

struct Case {
  fs::path model;
  std::vector<fs::path> inputs, outputs;  ///< in the order of the model's; no inputs: counted up
};

Case case_of(const fs::path& path) {
  if (path.extension() == ".onnx") {
    return {path, {}, {path.parent_path() / (path.stem().string() + "_output_0.pb")}};
  }
  Case found{path / "model.onnx", {}, {}};
  const fs::path data = path / "test_data_set_0";
  for (int i = 0; fs::exists(data / ("input_" + std::to_string(i) + ".pb")); ++i) {
    found.inputs.push_back(data / ("input_" + std::to_string(i) + ".pb"));
  }
  for (int i = 0; fs::exists(data / ("output_" + std::to_string(i) + ".pb")); ++i) {
    found.outputs.push_back(data / ("output_" + std::to_string(i) + ".pb"));
  }
  return found;
}

std::int64_t numbers_of(const onnx::ValueMessage& value) {
  std::int64_t count = 1;
  for (const onnx::DimMessage& dim : value.shape.value()) count *= dim.value.value_or(1);
  return count;
}

/// Which inputs are weights in any real network, where the case has them as inputs.
bool is_constant(const onnx::GraphMessage& graph, std::size_t input) {
  static const std::set<std::string_view> of_values = {"Add", "Sum", "Mul", "Concat"};
  if (graph.nodes.size() != 1) return input > 0;
  const std::string_view op = graph.nodes[0].op_type;
  if (op == "Gather") return input == 0;
  if ((op == "Add" || op == "Mul") && input == 1) return numbers_of(graph.inputs[1]) < numbers_of(graph.inputs[0]);
  if (op == "Gemm" && input == 2) return numbers_of(graph.inputs[2]) < numbers_of(graph.outputs.at(0));
  return input > 0 && !of_values.contains(op);
}

HostTensor counted(const OnnxValue& value) {
  HostTensor tensor{.dtype = DType::f32, .extents = value.extents, .values = {}};
  std::int64_t count = 1;
  for (const std::int64_t extent : value.extents) count *= extent;
  for (std::int64_t i = 0; i < count; ++i) {
    tensor.values.push_back(static_cast<float>(static_cast<double>(i) / static_cast<double>(count)));
  }
  return tensor;
}

std::vector<double> run(OnnxModel& model, const std::map<std::string, HostTensor>& inputs, DType dtype) {
  if (model.graph.nodes().size() == 1)
    return from_graph(model.output, to_graph(model.inputs[0], inputs.begin()->second.values));
  const auto backend = make_backend("eigen");
  Plan plan(model.graph, *backend, {.mode = Mode::inference, .dtype = dtype});
  load_weights(plan, model.weights);
  for (const OnnxValue& input : model.inputs) {
    upload(backend->device(), plan.input(input.node), to_graph(input, inputs.at(input.name).values));
  }
  plan.forward();
  std::vector<double> output(static_cast<std::size_t>(plan.output().shape.count()));
  download(backend->device(), output, plan.output());
  return from_graph(model.output, output);
}

bool logits = false;                 ///< after --logits
std::optional<OnnxOptions> refusal;  ///< after --refusal
double worst_difference = 0;         ///< the case's

/// Throws std::runtime_error where a number differs.
void compare(const std::vector<double>& got, const HostTensor& wanted) {
  if (got.size() != wanted.values.size()) throw std::runtime_error("another number of values");
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) != std::isnan(wanted.values[i]))
      throw std::runtime_error("value " + std::to_string(i) + " is " + std::to_string(got[i]) + ", not " +
                               std::to_string(wanted.values[i]));
    largest = std::max(largest, std::abs(wanted.values[i]));
    difference = std::max(difference, std::abs(got[i] - wanted.values[i]));
  }
  worst_difference = std::max(worst_difference, largest > 0 ? difference / largest : difference);
  if (logits) {
    if (!(worst_difference <= 1e-4)) throw std::runtime_error("the logits differ");
    return;
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double a = got[i], b = wanted.values[i];
    const bool same =
        a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= absolute + relative * std::abs(b);
    if (!same) {
      throw std::runtime_error("value " + std::to_string(i) + " is " + std::to_string(a) + ", not " +
                               std::to_string(b));
    }
  }
}

/// Operators that only ever work on constants here: their cases are folded.
bool is_folded(const onnx::GraphMessage& graph) {
  static const std::set<std::string_view> operators = {"Constant", "ConstantOfShape", "Gather"};
  return graph.nodes.size() == 1 && operators.contains(graph.nodes[0].op_type) &&
         (graph.nodes[0].op_type != "Gather" || graph.inputs.at(0).shape.value().size() != 2);
}

void check(const Case& its) {
  std::ifstream in(its.model, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const onnx::ModelMessage message = onnx::decode_model(bytes, its.model.string());
  const onnx::GraphMessage& graph = message.graph.value();
  OnnxOptions options;
  std::map<std::string, HostTensor> values;
  const bool folds = is_folded(graph);
  for (std::size_t i = 0; i < its.inputs.size(); ++i) {
    const std::string name(graph.inputs.at(i).name);
    if (graph.inputs[i].type == onnx::ElementType::none) throw Unsupported("its input is no tensor");
    HostTensor tensor = read_onnx_tensor(its.inputs[i]);
    if (logits) options.batch = static_cast<int>(tensor.extents.at(0));
    (folds || is_constant(graph, i) ? options.constants : values)[name] = std::move(tensor);
  }
  if (its.outputs.empty()) throw std::runtime_error("the case has no output");
  for (std::size_t i = 0; i < its.outputs.size(); ++i) {
    options.output = graph.outputs.at(i).name;
    if (graph.outputs[i].type == onnx::ElementType::none) throw Unsupported("its output is no tensor");
    const HostTensor wanted = read_onnx_tensor(its.outputs[i]);
    auto result = onnx::Importer(message, options, its.model).run_or_fold();
    // It is folded, or the mask of a Dropout that drops nothing.
    if (const auto* constant = std::get_if<onnx::Constant>(&result)) {
      std::vector<double> numbers;
      for (std::int64_t at = 0; at < constant->count(); ++at) numbers.push_back(constant->at(at));
      if (constant->extents != wanted.extents) throw std::runtime_error("the constant output has other extents");
      compare(numbers, wanted);
      continue;
    }
    OnnxModel model = std::move(std::get<OnnxModel>(result));
    if (model.output.extents != wanted.extents) throw std::runtime_error("the output has other extents");
    if (its.inputs.empty()) {
      for (const OnnxValue& input : model.inputs) values[input.name] = counted(input);
    }
    compare(run(model, values, wanted.dtype), wanted);
  }
}

/// With the weights that a plan starts with, and running statistics that are not 0 and 1.
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

}  // namespace

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "--logits") {
      logits = true;
      continue;
    }
    if (argument == "--zoo") {
      for (const nets::Info& info : nets::list()) std::printf("%s\n", std::string(info.name).c_str());
      continue;
    }
    if (argument.starts_with("--write=")) {
      write_network(argument.substr(8), arguments[++i]);
      continue;
    }
    if (argument.starts_with("--refusal")) {
      refusal = OnnxOptions{.all_refusals = argument.ends_with("s")};
      continue;
    }
    worst_difference = 0;
    nlohmann::json line = {{"case", fs::path(argument).stem().string()}, {"result", "passed"}, {"why", ""}};
    try {
      refusal ? void(read_onnx(argument, *refusal)) : check(case_of(argument));
    } catch (const Unsupported& refused) {
      line["result"] = "refused", line["why"] = refused.what();
    } catch (const std::exception& failed) {
      line["result"] = "failed", line["why"] = failed.what();
    }
    line["difference"] = worst_difference;
    std::printf("%s\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    std::fflush(stdout);
  }
  return 0;
}
