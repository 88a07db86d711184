#pragma once
// The messages of an ONNX file as plain structs: those parts of onnx.proto that this reader needs. Text and raw numbers
// are views of the file's bytes, which must outlive them. Only the form of the messages is checked here.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::onnx {

using Extents = std::vector<std::int64_t>;

/// Element types, by their numbers in the format.
enum class ElementType : std::int32_t {
  none = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  i32 = 6,
  i64 = 7,
  text = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  bf16 = 16
};

/// TensorProto.
struct TensorMessage {
  std::string_view name;
  Extents dims;
  ElementType type = ElementType::none;
  std::optional<std::string_view> raw;  ///< raw_data
  std::vector<double> numbers;          ///< float_data, int32_data, int64_data, double_data or uint64_data
  bool external = false;
  std::string_view location, offset, length;  ///< where external data is, as written
};

/// AttributeProto: its name, and the message, which is decoded on demand.
struct AttributeMessage {
  std::string_view name;
  std::string_view body;
};

/// NodeProto.
struct NodeMessage {
  std::string_view name, op_type, domain;
  std::vector<std::string_view> inputs, outputs;  ///< an empty name: absent
  std::vector<AttributeMessage> attributes;
  std::string_view traced;  ///< metadata of PyTorch's new exporter: the traced call

  /// Whether the operator is ONNX's own: another domain's Add may be anything.
  bool is_of_onnx() const { return domain.empty() || domain == "ai.onnx"; }
};

/// A dimension of a value: a number, or the name of an open extent, or neither.
struct DimMessage {
  std::optional<std::int64_t> value;
  std::string_view param;
};

/// ValueInfoProto of a tensor.
struct ValueMessage {
  std::string_view name;
  ElementType type = ElementType::none;  ///< none: not a tensor
  std::optional<std::vector<DimMessage>> shape;
  std::string_view folded_from;  ///< metadata of PyTorch: the names that an initializer was computed from
};

/// GraphProto.
struct GraphMessage {
  std::vector<NodeMessage> nodes;
  std::vector<TensorMessage> initializers;
  std::vector<ValueMessage> inputs, outputs, values;  ///< values: value_info
  bool sparse = false;                                ///< whether it has sparse initializers
  std::string_view signature;                         ///< metadata of PyTorch: a line for each parameter or buffer
};

/// ModelProto.
struct ModelMessage {
  std::optional<std::int64_t> opset;  ///< opset of the default domain
  std::string_view producer;          ///< the program that wrote the file
  std::optional<GraphMessage> graph;
};

/// The value of an attribute: the fields that were present. Attributes inside a graph stay encoded.
struct AttributeValue {
  std::optional<float> number;
  std::optional<std::int64_t> integer;
  std::optional<std::string_view> text;
  std::optional<TensorMessage> tensor;
  std::optional<GraphMessage> graph;
  std::vector<float> numbers;
  Extents integers;
  std::vector<std::string_view> texts;
};

/// Both functions throw a FileError that begins with `file` for a field that exceeds its message, a number that is too
/// long, or more parts than the memory limit allows.
ModelMessage decode_model(std::string_view bytes, const std::string& file);
AttributeValue decode_attribute(const AttributeMessage&, const std::string& file);

}  // namespace lamina::onnx
