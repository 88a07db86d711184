// Decoding of ONNX's messages. A field of an unexpected wire type counts as unknown and is skipped, as protobuf has it.

#include "messages.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <protozero/pbf_reader.hpp>

#include "lamina/error.h"

namespace lamina::onnx {
namespace {

using Reader = protozero::pbf_reader;
using Wire = protozero::pbf_wire_type;

constexpr std::uint32_t field(std::uint32_t number, Wire wire) {
  return protozero::tag_and_type<std::uint32_t>(number, wire);
}
constexpr std::uint32_t bytes(std::uint32_t number) { return field(number, Wire::length_delimited); }
constexpr std::uint32_t varint(std::uint32_t number) { return field(number, Wire::varint); }
constexpr std::uint32_t fixed32(std::uint32_t number) { return field(number, Wire::fixed32); }
constexpr std::uint32_t fixed64(std::uint32_t number) { return field(number, Wire::fixed64); }

std::string_view view(Reader& reader) {
  const protozero::data_view text = reader.get_view();
  return {text.data(), text.size()};
}

Reader reader_of(std::string_view text) { return Reader(protozero::data_view(text.data(), text.size())); }

/// More parts than a message of its length should have.
struct TooMany {
  std::string why;
};

/// Bytes for the structs of a message: a real one takes as much as its own length or less.
std::size_t room(std::string_view text, std::size_t more) { return 8 * text.size() + more; }

/// How often one of the fields occurs in a message.
std::size_t count(Reader reader, std::initializer_list<std::uint32_t> fields) {
  std::size_t found = 0;
  while (reader.next()) {
    const bool wanted = std::find(fields.begin(), fields.end(), reader.tag_and_type()) != fields.end();
    found += wanted ? 1 : 0;
    reader.skip();
  }
  return found;
}

/// An entry of external_data or metadata_props: a key and its value.
std::pair<std::string_view, std::string_view> entry_of(Reader entry) {
  std::string_view key, value;
  while (entry.next()) {
    switch (entry.tag_and_type()) {
      case bytes(1): key = view(entry); break;
      case bytes(2): value = view(entry); break;
      default: entry.skip();
    }
  }
  return {key, value};
}

void external_entry(Reader entry, TensorMessage& tensor) {
  const auto [key, value] = entry_of(entry);
  if (key == "location") tensor.location = value;
  if (key == "offset") tensor.offset = value;
  if (key == "length") tensor.length = value;
}

/// Decodes messages whose structs take at most `most_bytes`: a message of two bytes would take a hundred.
class Decoder {
 public:
  explicit Decoder(std::size_t most_bytes) : most_bytes_(most_bytes), left_(most_bytes) {}

  TensorMessage tensor_of(Reader reader) {
    TensorMessage tensor;
    reserve(tensor.dims, count(reader, {varint(1)}));
    reserve(tensor.numbers, count(reader, {fixed32(4), varint(5), varint(7), fixed64(10), varint(11)}));
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case bytes(1): append(tensor.dims, reader.get_packed_int64()); break;
        case varint(1): tensor.dims.push_back(reader.get_int64()); break;
        case varint(2): tensor.type = static_cast<ElementType>(reader.get_int32()); break;
        case bytes(4): append(tensor.numbers, reader.get_packed_float()); break;
        case fixed32(4): tensor.numbers.push_back(reader.get_float()); break;
        case bytes(5): append(tensor.numbers, reader.get_packed_int32()); break;
        case varint(5): tensor.numbers.push_back(reader.get_int32()); break;
        case bytes(7): append(tensor.numbers, reader.get_packed_int64()); break;
        case varint(7): tensor.numbers.push_back(static_cast<double>(reader.get_int64())); break;
        case bytes(8): tensor.name = view(reader); break;
        case bytes(9): tensor.raw = view(reader); break;
        case bytes(10): append(tensor.numbers, reader.get_packed_double()); break;
        case fixed64(10): tensor.numbers.push_back(reader.get_double()); break;
        case bytes(11): append(tensor.numbers, reader.get_packed_uint64()); break;
        case varint(11): tensor.numbers.push_back(static_cast<double>(reader.get_uint64())); break;
        case bytes(13): external_entry(reader.get_message(), tensor); break;
        case varint(14): tensor.external = reader.get_int32() == 1; break;
        default: reader.skip();
      }
    }
    return tensor;
  }

  AttributeMessage attribute_of(std::string_view body) {
    AttributeMessage attribute{.name = {}, .body = body};
    Reader reader = reader_of(body);
    while (reader.next()) {
      if (reader.tag_and_type() == bytes(1)) {
        attribute.name = view(reader);
      } else {
        reader.skip();
      }
    }
    return attribute;
  }

  NodeMessage node_of(Reader reader) {
    NodeMessage node;
    reserve(node.inputs, count(reader, {bytes(1)}));
    reserve(node.outputs, count(reader, {bytes(2)}));
    reserve(node.attributes, count(reader, {bytes(5)}));
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case bytes(1): node.inputs.push_back(view(reader)); break;
        case bytes(2): node.outputs.push_back(view(reader)); break;
        case bytes(3): node.name = view(reader); break;
        case bytes(4): node.op_type = view(reader); break;
        case bytes(5): node.attributes.push_back(attribute_of(view(reader))); break;
        case bytes(7): node.domain = view(reader); break;
        case bytes(9):
          if (const auto [key, value] = entry_of(reader.get_message()); key == "pkg.torch.onnx.fx_node")
            node.traced = value;
          break;
        default: reader.skip();
      }
    }
    return node;
  }

  static DimMessage dim_of(Reader reader) {
    DimMessage dim;
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case varint(1): dim.value = reader.get_int64(); break;
        case bytes(2): dim.param = view(reader); break;
        default: reader.skip();
      }
    }
    return dim;
  }

  std::vector<DimMessage> shape_of(Reader reader) {
    std::vector<DimMessage> dims;
    reserve(dims, count(reader, {bytes(1)}));
    while (reader.next()) {
      if (reader.tag_and_type() == bytes(1)) {
        dims.push_back(dim_of(reader.get_message()));
      } else {
        reader.skip();
      }
    }
    return dims;
  }

  void tensor_type(Reader reader, ValueMessage& value) {
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case varint(1): value.type = static_cast<ElementType>(reader.get_int32()); break;
        case bytes(2): value.shape = shape_of(reader.get_message()); break;
        default: reader.skip();
      }
    }
  }

  ValueMessage value_of(Reader reader) {
    ValueMessage value;
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case bytes(1): value.name = view(reader); break;
        case bytes(2):
          for (Reader type = reader.get_message(); type.next();) {
            if (type.tag_and_type() == bytes(1)) {
              tensor_type(type.get_message(), value);
            } else {
              type.skip();
            }
          }
          break;
        case bytes(4): metadata(reader.get_message(), "pkg.onnxscript.optimizer.folded_from", value.folded_from); break;
        default: reader.skip();
      }
    }
    return value;
  }

  /// Takes the entry of that key.
  static void metadata(Reader reader, std::string_view key, std::string_view& value) {
    std::string_view its_key, its_value;
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case bytes(1): its_key = view(reader); break;
        case bytes(2): its_value = view(reader); break;
        default: reader.skip();
      }
    }
    if (its_key == key) value = its_value;
  }

  GraphMessage graph_of(Reader reader) {
    GraphMessage graph;
    reserve(graph.nodes, count(reader, {bytes(1)}));
    reserve(graph.initializers, count(reader, {bytes(5)}));
    reserve(graph.inputs, count(reader, {bytes(11)}));
    reserve(graph.outputs, count(reader, {bytes(12)}));
    reserve(graph.values, count(reader, {bytes(13)}));
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case bytes(1): graph.nodes.push_back(node_of(reader.get_message())); break;
        case bytes(5): graph.initializers.push_back(tensor_of(reader.get_message())); break;
        case bytes(11): graph.inputs.push_back(value_of(reader.get_message())); break;
        case bytes(12): graph.outputs.push_back(value_of(reader.get_message())); break;
        case bytes(13): graph.values.push_back(value_of(reader.get_message())); break;
        case bytes(15): graph.sparse = true, reader.skip(); break;
        case bytes(16):
          metadata(reader.get_message(), "pkg.torch.export.ExportedProgram.graph_signature", graph.signature);
          break;
        default: reader.skip();
      }
    }
    return graph;
  }

  static void opset_import(Reader reader, ModelMessage& model) {
    std::string_view domain;
    std::int64_t version = 0;
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case bytes(1): domain = view(reader); break;
        case varint(2): version = reader.get_int64(); break;
        default: reader.skip();
      }
    }
    if (domain.empty() || domain == "ai.onnx") model.opset = version;
  }

  ModelMessage model_of(Reader reader) {
    ModelMessage model;
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case bytes(2): model.producer = view(reader); break;
        case bytes(7): model.graph = graph_of(reader.get_message()); break;
        case bytes(8): opset_import(reader.get_message(), model); break;
        default: reader.skip();
      }
    }
    return model;
  }

  AttributeValue attribute_value(Reader reader) {
    AttributeValue value;
    reserve(value.numbers, count(reader, {fixed32(7)}));
    reserve(value.integers, count(reader, {varint(8)}));
    reserve(value.texts, count(reader, {bytes(9)}));
    while (reader.next()) {
      switch (reader.tag_and_type()) {
        case fixed32(2): value.number = reader.get_float(); break;
        case varint(3): value.integer = reader.get_int64(); break;
        case bytes(4): value.text = view(reader); break;
        case bytes(5): value.tensor = tensor_of(reader.get_message()); break;
        case bytes(6): value.graph = graph_of(reader.get_message()); break;
        case bytes(7): append(value.numbers, reader.get_packed_float()); break;
        case fixed32(7): value.numbers.push_back(reader.get_float()); break;
        case bytes(8): append(value.integers, reader.get_packed_int64()); break;
        case varint(8): value.integers.push_back(reader.get_int64()); break;
        case bytes(9): value.texts.push_back(view(reader)); break;
        default: reader.skip();
      }
    }
    return value;
  }

 private:
  /// Room for so many more.
  template <class Element>
  void reserve(std::vector<Element>& elements, std::size_t more) {
    if (more == 0) return;
    if (more > left_ / sizeof(Element)) {
      throw TooMany{"its parts are so many and so small that they would take more than " + std::to_string(most_bytes_) +
                    " bytes"};
    }
    left_ -= more * sizeof(Element);
    const std::size_t needed = elements.size() + more;
    if (needed > elements.capacity()) elements.reserve(std::max(needed, 2 * elements.capacity()));
  }

  template <class Numbers, class Range>
  void append(Numbers& numbers, const Range& range) {
    reserve(numbers, static_cast<std::size_t>(std::distance(range.begin(), range.end())));
    for (auto it = range.begin(); it != range.end(); ++it) {
      numbers.push_back(static_cast<typename Numbers::value_type>(*it));
    }
  }

  std::size_t most_bytes_, left_;
};

template <class Decode>
auto checked(const std::string& file, const std::string& what, Decode decode) {
  try {
    return decode();
  } catch (const TooMany& error) {
    throw FileError(file + ": " + what + ": " + error.why);
  } catch (const protozero::exception& error) {
    throw FileError(file + ": " + what + " is truncated or not of ONNX's form (" + error.what() + ")");
  }
}

}  // namespace

ModelMessage decode_model(std::string_view bytes, const std::string& file) {
  return checked(file, "the model", [&] { return Decoder(room(bytes, 192 << 10)).model_of(reader_of(bytes)); });
}

TensorMessage decode_tensor(std::string_view bytes, const std::string& file) {
  return checked(file, "a tensor", [&] { return Decoder(room(bytes, 192 << 10)).tensor_of(reader_of(bytes)); });
}

AttributeValue decode_attribute(const AttributeMessage& attribute, const std::string& file) {
  return checked(file, "an attribute",
                 [&] { return Decoder(room(attribute.body, 4 << 10)).attribute_value(reader_of(attribute.body)); });
}

}  // namespace lamina::onnx
