// Copies tensors between files and plans, by PyTorch's names and extents.

#include "lamina/weights.h"

#include <algorithm>
#include <set>
#include <span>

#include "lamina/device.h"
#include "lamina/error.h"
#include "lib/core/numbers/elements.h"

namespace lamina {
namespace {

const Node& node_of(const Plan& plan, const Stored& its) {
  return plan.graph().nodes()[static_cast<std::size_t>(its.first.node)];
}

/// Whether the node is a scale whose shift is fixed, such as a layer scale. PyTorch has it as a parameter of the block,
/// with the node's name.
bool is_scale_alone(const Node& node) {
  return std::holds_alternative<ScaleShift>(node.op) && node.fixed == std::vector{false, true};
}

/// Every tensor of a plan that belongs in a file. Counters (a dropout's step) do not belong there.
std::vector<std::pair<Stored, Tensor>> tensors_of(const Plan& plan) {
  std::vector<std::pair<Stored, Tensor>> tensors;
  for (Stored& its : plan.graph().parameters()) {
    const Tensor tensor = plan.parameter(its.name);
    const Node& node = node_of(plan, its);
    if (is_scale_alone(node)) its.aliases.push_back(node.name);
    tensors.emplace_back(std::move(its), tensor);
  }
  for (Stored& its : plan.graph().states()) {
    const Tensor tensor = plan.state(its.name);
    if (tensor.dtype != DType::u64) tensors.emplace_back(std::move(its), tensor);
  }
  return tensors;
}

/// The first of a tensor's names that a file has, or else the tensor's own name.
std::string name_in(const TensorFile& file, const Stored& its) {
  const auto has = [&](const std::string& name) { return file.contains(name); };
  const auto alias = std::ranges::find_if(its.aliases, has);
  return has(its.name) || alias == its.aliases.end() ? its.name : *alias;
}

std::string text_of(const std::vector<std::int64_t>& extents) {
  std::string text;
  for (const std::int64_t extent : extents) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text.empty() ? "a scalar" : text;
}

bool fits(const std::vector<std::int64_t>& extents, const Shape& shape) {
  using Extents = std::vector<std::int64_t>;
  return extents == Extents{shape.n, shape.c, shape.h, shape.w} || extents == Extents{shape.n, shape.image()} ||
         ((extents == Extents{shape.c} || extents == Extents{shape.c, 1, 1}) && shape == Shape{1, shape.c, 1, 1});
}

/// The reason why a tensor of a file cannot be loaded, or empty.
std::string objection(const HostTensor& host, const Tensor& tensor) {
  if (!fits(host.extents, tensor.shape))
    return "is " + text_of(host.extents) + " in the file and " + to_string(tensor.shape) + " in the plan";
  if (static_cast<std::int64_t>(host.values.size()) != tensor.shape.count())
    return "has " + std::to_string(host.values.size()) + " values for " + text_of(host.extents);
  const auto wide = std::find_if(host.values.begin(), host.values.end(),
                                 [&](double value) { return overflows(tensor.dtype, value); });
  if (wide == host.values.end()) return "";
  return "has " + std::to_string(*wide) + ", which is beyond the numbers of " + std::string(to_string(tensor.dtype));
}

bool ignored(std::string_view name) { return name == "num_batches_tracked" || name.ends_with(".num_batches_tracked"); }

/// PyTorch's extents: four for a filter; two for a fully connected op, an embedding or a recurrent op; else one.
std::vector<std::int64_t> extents_of(const Plan& plan, const std::string& name, const Shape& shape) {
  const std::size_t dot = name.rfind('.');
  const Op& op = plan.graph().node(std::string_view(name).substr(0, dot)).op;
  const bool by_channel = is_norm(op) || std::holds_alternative<PRelu>(op) || std::holds_alternative<ScaleShift>(op);
  if (by_channel || name.substr(dot + 1).starts_with("bias")) return {shape.c};
  if (std::holds_alternative<Conv>(op) || std::holds_alternative<ConvTranspose>(op))
    return {shape.n, shape.c, shape.h, shape.w};
  return {shape.n, shape.image()};
}

}  // namespace

void load_weights(Plan& plan, const TensorFile& file, const std::string& file_name) {
  auto tensors = tensors_of(plan);
  std::erase_if(tensors, [&](const auto& each) {  // the fixed shift, if the file has the scale alone
    const Node& node = node_of(plan, each.first);
    return each.first.fixed && is_scale_alone(node) && file.contains(node.name);
  });
  std::vector<std::string> problems;
  std::set<std::string> known;
  for (const auto& [its, tensor] : tensors) {
    const std::string name = name_in(file, its);
    known.insert(its.name);
    known.insert(its.aliases.begin(), its.aliases.end());
    const auto host = file.find(name);
    const std::string problem =
        host == file.end() ? "is missing, or not of a floating point type" : objection(host->second, tensor);
    if (!problem.empty()) problems.push_back("'" + name + "' " + problem);
    for (const std::string& alias : its.aliases)
      if (const auto other = file.find(alias);
          other != file.end() && other != host && other->second.values != host->second.values)
        problems.push_back("'" + alias + "' has other numbers than '" + name +
                           "', but the plan has one tensor for both");
  }
  for (const auto& [name, host] : file)
    if (!known.contains(name) && !ignored(name))
      problems.push_back("'" + name + "' belongs to nothing in the plan of '" + plan.graph().name() + "'");
  if (!problems.empty()) {
    constexpr std::size_t shown = 4;
    std::string message = file_name + ": ";
    for (std::size_t i = 0; i < std::min(shown, problems.size()); ++i)
      message.append(i == 0 ? "" : "; ") += problems[i];
    if (problems.size() > shown) message += "; and " + std::to_string(problems.size() - shown) + " more";
    throw FileError(message);
  }

  for (const auto& [its, tensor] : tensors)
    upload(plan.backend().device(), tensor, std::span<const double>(file.at(name_in(file, its)).values));
  plan.parameters_changed();
}

TensorFile save_weights(const Plan& plan) {
  TensorFile file;
  for (const auto& [its, tensor] : tensors_of(plan)) {
    HostTensor& host = file[its.name];
    host.dtype = tensor.dtype;
    host.extents = extents_of(plan, its.name, tensor.shape);
    host.values.resize(static_cast<std::size_t>(tensor.shape.count()));
    download(plan.backend().device(), std::span<double>(host.values), tensor);
  }
  return file;
}

HostTensor hwc_to_chw(const HostTensor& weight, const Shape& image) {
  const auto values = static_cast<std::int64_t>(weight.values.size());
  const bool matrix =
      weight.extents.size() == 2 && std::min({image.c, image.h, image.w}) > 0 && weight.extents[1] == image.image();
  if (!matrix || values % image.image() != 0 || values / image.image() != weight.extents[0])
    throw UsageError("hwc_to_chw: the weight is " + text_of(weight.extents) + ", but an image of " +
                     std::to_string(image.c) + "x" + std::to_string(image.h) + "x" + std::to_string(image.w) +
                     " needs a matrix of " + std::to_string(image.image()) + " columns");
  HostTensor out = weight;
  const auto channels = static_cast<std::size_t>(image.c), plane = static_cast<std::size_t>(image.plane());
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    const std::size_t row = i / plane / channels, c = i / plane % channels, pixel = i % plane;
    out.values[i] = weight.values[(row * plane + pixel) * channels + c];
  }
  return out;
}

}  // namespace lamina
