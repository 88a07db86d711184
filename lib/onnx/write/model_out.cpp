// Encoding of ONNX's messages.

#include "model_out.h"

#include <algorithm>
#include <limits>

#include "lamina/error.h"
#include "lib/core/numbers/elements.h"

namespace lamina::onnx {

constexpr std::size_t longest = std::numeric_limits<std::int32_t>::max();

std::string ModelOut::free_name(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return c == '\'' || c == '\n'; }, '_');  // the signature has quotes and lines
  while (!taken_.insert(name).second) name += "_";
  return name;
}

void ModelOut::add(const NodeOut& its) {
  Writer node(out_, 1);
  for (const std::string& input : its.inputs) node.add_string(1, input);
  for (int i = 0; i < its.unused; ++i) node.add_string(2, "");
  node.add_string(2, its.output);
  node.add_string(3, its.name);
  node.add_string(4, its.op_type);
  for (const auto& [name, value] : its.attributes) {
    constexpr std::int32_t kinds[] = {2, 1, 3, 7};
    Writer attribute(node, 5);
    attribute.add_string(1, name);
    if (const auto* number = std::get_if<std::int64_t>(&value)) attribute.add_int64(3, *number);
    if (const auto* number = std::get_if<double>(&value)) attribute.add_float(2, static_cast<float>(*number));
    if (const auto* text = std::get_if<std::string>(&value)) attribute.add_string(4, *text);
    if (const auto* numbers = std::get_if<Extents>(&value))
      for (const std::int64_t number : *numbers) attribute.add_int64(8, number);
    attribute.add_int32(20, kinds[value.index()]);
  }
}

std::string ModelOut::add_numbers(const std::string& name, const Extents& extents, std::span<const double> values) {
  if (values.size() > longest / sizeof(float)) fail_long();
  const auto beyond = std::ranges::find_if(values, [](double v) { return overflows(DType::f32, v); });
  if (beyond != values.end())
    throw FileError(file_ + ": \"" + name + "\" has " + std::to_string(*beyond) + ", which is out of range for f32");
  std::string raw(values.size() * sizeof(float), '\0');
  encode(DType::f32, values, std::as_writable_bytes(std::span(raw)));
  std::string tensor;
  Writer writer(tensor);
  if (!extents.empty()) writer.add_packed_int64(1, extents.begin(), extents.end());
  writer.add_int32(2, static_cast<std::int32_t>(ElementType::f32));
  writer.add_string(8, name);
  writer.add_bytes(9, raw);
  add_tensor(tensor);
  return name;
}

std::string ModelOut::add_integers(const std::string& name, const Extents& values) {
  std::string tensor;
  Writer writer(tensor);
  writer.add_int64(1, static_cast<std::int64_t>(values.size()));
  writer.add_int32(2, static_cast<std::int32_t>(ElementType::i64));
  writer.add_packed_int64(7, values.begin(), values.end());
  writer.add_string(8, name);
  add_tensor(tensor);
  return name;
}

void ModelOut::add_tensor(const std::string& tensor) {
  if (graph_.size() + tensor.size() > longest) fail_long();
  out_.add_message(5, tensor);
}

void ModelOut::add_role(std::string_view initializer, bool trains) {
  signature_ += trains ? "p: PARAMETER target='" : "p: BUFFER target='";
  signature_ += initializer;
  signature_ += "'\n";
}

void ModelOut::add_value(std::uint32_t field, const std::string& name, const Shape& its, bool matrix) {
  Writer value(out_, field);
  value.add_string(1, name);
  Writer type(value, 2), tensor(type, 1);
  tensor.add_int32(1, static_cast<std::int32_t>(ElementType::f32));
  Writer shape(tensor, 2);
  Writer(shape, 1).add_string(2, "batch");
  Extents others = {its.c};
  if (!matrix) others.insert(others.end(), {its.h, its.w});
  for (const std::int64_t extent : others) Writer(shape, 1).add_int64(1, extent);
}

std::string ModelOut::bytes(const std::string& graph) {
  constexpr std::int64_t opset = 21, ir_version = 10;
  out_.add_string(2, graph);
  Writer metadata(out_, 16);
  metadata.add_string(1, "pkg.torch.export.ExportedProgram.graph_signature");
  metadata.add_string(2, signature_);
  metadata.commit();
  std::string model;
  Writer writer(model);
  writer.add_int64(1, ir_version);
  writer.add_string(2, "lamina");
  Writer set(writer, 8);
  set.add_string(1, "");
  set.add_int64(2, opset);
  set.commit();
  writer.add_message(7, graph_);
  if (model.size() > longest) fail_long();
  return model;
}

void ModelOut::fail_long() const { throw FileError(file_ + ": the model would be longer than 2 GB"); }

}  // namespace lamina::onnx
