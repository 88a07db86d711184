#pragma once
// A node of the file that is written.

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <variant>
#include <vector>

namespace lamina::onnx {

struct AttributeOut {
  const char* name;
  std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>> value;
};

struct NodeOut {
  const char* op_type;
  std::string name;
  std::vector<std::string> inputs;
  std::string output;
  std::vector<AttributeOut> attributes{};
  int unused = 0;  ///< outputs before this one

  /// NodeProto.
  std::string bytes() const {
    std::string all;
    protozero::pbf_writer node(all);
    for (const std::string& input : inputs) node.add_string(1, input);
    for (int i = 0; i < unused; ++i) node.add_string(2, "");
    node.add_string(2, output);
    node.add_string(3, name);
    node.add_string(4, op_type);
    for (const AttributeOut& its : attributes) {
      constexpr std::int32_t kinds[] = {2, 1, 3, 7};
      protozero::pbf_writer attribute(node, 5);
      attribute.add_string(1, its.name);
      if (const auto* number = std::get_if<std::int64_t>(&its.value)) attribute.add_int64(3, *number);
      if (const auto* number = std::get_if<double>(&its.value)) attribute.add_float(2, static_cast<float>(*number));
      if (const auto* text = std::get_if<std::string>(&its.value)) attribute.add_string(4, *text);
      if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&its.value))
        for (const std::int64_t number : *numbers) attribute.add_int64(8, number);
      attribute.add_int32(20, kinds[its.value.index()]);
    }
    return all;
  }
};

}  // namespace lamina::onnx
