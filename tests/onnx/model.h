#pragma once
// ONNX models by hand, as bytes: a few fields of each message.

#include <cstdint>
#include <initializer_list>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::test {

using Extents = std::vector<std::int64_t>;

inline std::string tensor(std::string_view name, const Extents& dims, const std::vector<float>& values) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  writer.add_packed_int64(1, dims.begin(), dims.end());
  writer.add_int32(2, 1);
  writer.add_string(8, name.data(), name.size());
  writer.add_bytes(9, reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return bytes;
}

inline std::string integers(std::string_view name, const Extents& values) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  writer.add_int64(1, static_cast<std::int64_t>(values.size()));
  writer.add_int32(2, 7);
  writer.add_packed_int64(7, values.begin(), values.end());
  writer.add_string(8, name.data(), name.size());
  return bytes;
}

/// A tensor of f32 whose numbers are in another file.
inline std::string external(std::string_view name, const Extents& dims, std::string_view location,
                            std::string_view offset = "", std::string_view length = "") {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  writer.add_packed_int64(1, dims.begin(), dims.end());
  writer.add_int32(2, 1);
  writer.add_string(8, name.data(), name.size());
  const auto entry = [&](std::string_view key, std::string_view value) {
    protozero::pbf_writer pair(writer, 13);
    pair.add_string(1, key.data(), key.size());
    pair.add_string(2, value.data(), value.size());
  };
  entry("location", location);
  if (!offset.empty()) entry("offset", offset);
  if (!length.empty()) entry("length", length);
  writer.add_int32(14, 1);
  return bytes;
}

/// One attribute: a number, a list of numbers, a text or a tensor.
struct Attribute {
  std::string name;
  std::string bytes;
  Attribute(std::string_view its, std::int64_t value) : name(its) { protozero::pbf_writer(bytes).add_int64(3, value); }
  Attribute(std::string_view its, float value) : name(its) { protozero::pbf_writer(bytes).add_float(2, value); }
  Attribute(std::string_view its, const Extents& values) : name(its) {
    protozero::pbf_writer(bytes).add_packed_int64(8, values.begin(), values.end());
  }
  Attribute(std::string_view its, const char* text) : name(its) { protozero::pbf_writer(bytes).add_string(4, text); }
};

inline std::string node(std::string_view op_type, std::initializer_list<std::string_view> inputs,
                        std::initializer_list<std::string_view> outputs, std::vector<Attribute> attributes = {},
                        std::string_view name = "") {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  for (const std::string_view input : inputs) writer.add_string(1, input.data(), input.size());
  for (const std::string_view output : outputs) writer.add_string(2, output.data(), output.size());
  writer.add_string(3, name.data(), name.size());
  writer.add_string(4, op_type.data(), op_type.size());
  for (const Attribute& attribute : attributes) {
    std::string body = attribute.bytes;
    protozero::pbf_writer(body).add_string(1, attribute.name);
    writer.add_message(5, body);
  }
  return bytes;
}

/// A value of f32; an extent of 0 or below is left open, by the next of the names or else "batch" (0), or by none.
inline std::string value(std::string_view name, const Extents& dims, const std::vector<std::string>& names = {}) {
  std::string shape;
  protozero::pbf_writer dims_of(shape);
  std::size_t open = 0;
  for (const std::int64_t extent : dims) {
    protozero::pbf_writer dim(dims_of, 1);
    if (extent > 0) dim.add_int64(1, extent);
    if (extent == 0) dim.add_string(2, open < names.size() ? names[open++] : "batch");
  }
  std::string tensor_type, type, bytes;
  protozero::pbf_writer(tensor_type).add_int32(1, 1);
  protozero::pbf_writer(tensor_type).add_message(2, shape);
  protozero::pbf_writer(type).add_message(1, tensor_type);
  protozero::pbf_writer(bytes).add_string(1, name.data(), name.size());
  protozero::pbf_writer(bytes).add_message(2, type);
  return bytes;
}

/// An attribute that is a graph.
inline Attribute branch(std::string_view name, const std::vector<std::string>& nodes, std::string_view output) {
  std::string graph;
  for (const std::string& each : nodes) protozero::pbf_writer(graph).add_message(1, each);
  protozero::pbf_writer(graph).add_message(12, value(output, {}));
  Attribute attribute(name, std::int64_t{0});
  attribute.bytes.clear();
  protozero::pbf_writer(attribute.bytes).add_message(6, graph);
  return attribute;
}

struct Model {
  std::vector<std::string> nodes, initializers, inputs, outputs;
  std::int64_t opset = 17;
  std::vector<std::string> values{};    ///< value_info
  std::string producer{}, signature{};  ///< of PyTorch's exporters
};

inline std::string bytes_of(const Model& model) {
  std::string graph, opset, bytes;
  protozero::pbf_writer writer(graph);
  for (const std::string& its : model.nodes) writer.add_message(1, its);
  for (const std::string& its : model.initializers) writer.add_message(5, its);
  for (const std::string& its : model.inputs) writer.add_message(11, its);
  for (const std::string& its : model.outputs) writer.add_message(12, its);
  for (const std::string& its : model.values) writer.add_message(13, its);
  if (!model.signature.empty()) {
    std::string entry;
    protozero::pbf_writer(entry).add_string(1, "pkg.torch.export.ExportedProgram.graph_signature");
    protozero::pbf_writer(entry).add_string(2, model.signature);
    writer.add_message(16, entry);
  }
  protozero::pbf_writer(opset).add_string(1, "");
  protozero::pbf_writer(opset).add_int64(2, model.opset);
  protozero::pbf_writer file(bytes);
  file.add_int64(1, 8);
  file.add_string(2, model.producer);
  file.add_message(7, graph);
  file.add_message(8, opset);
  return bytes;
}

}  // namespace lamina::test
