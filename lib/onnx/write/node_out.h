#pragma once
// A node of the file that is written: its operands, then its attributes.

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/op.h"

namespace lamina::onnx {

/// The attributes and operands of one node of the file.
class NodeOut {
 public:
  using Writer = protozero::pbf_writer;

  NodeOut(std::string_view op_type, const std::string& name, const std::vector<std::string>& inputs,
          const std::string& output) {
    Writer node(bytes_);
    for (const std::string& input : inputs) node.add_string(1, input);
    node.add_string(2, output);
    node.add_string(3, name);
    node.add_string(4, op_type.data(), op_type.size());
  }

  NodeOut& integer(const char* name, std::int64_t value) {
    constexpr std::int32_t kind = 2;
    return add(name, kind, [&](Writer& attribute) { attribute.add_int64(3, value); });
  }
  NodeOut& number(const char* name, double value) {
    constexpr std::int32_t kind = 1;
    return add(name, kind, [&](Writer& attribute) { attribute.add_float(2, static_cast<float>(value)); });
  }
  NodeOut& text(const char* name, const std::string& value) {
    constexpr std::int32_t kind = 3;
    return add(name, kind, [&](Writer& attribute) { attribute.add_string(4, value); });
  }
  NodeOut& integers(const char* name, const std::vector<std::int64_t>& values) {
    constexpr std::int32_t kind = 7;
    return add(name, kind, [&](Writer& attribute) {
      for (const std::int64_t value : values) attribute.add_int64(8, value);
    });
  }
  NodeOut& size(const char* name, Size size) { return integers(name, {size.h, size.w}); }
  NodeOut& pads(Size pad) { return integers("pads", {pad.h, pad.w, pad.h, pad.w}); }

  const std::string& bytes() const { return bytes_; }

 private:
  template <class Fill>
  NodeOut& add(const char* name, std::int32_t kind, Fill fill) {
    std::string body;
    Writer attribute(body);
    attribute.add_string(1, name);
    fill(attribute);
    attribute.add_int32(20, kind);
    Writer(bytes_).add_message(5, body);
    return *this;
  }

  std::string bytes_;
};

}  // namespace lamina::onnx
