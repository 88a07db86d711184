// Decoding of ONNX's messages. A field of an unexpected wire type counts as unknown and is skipped, as in protobuf.

#include "messages.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <protozero/pbf_reader.hpp>
#include <utility>

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

/// Thrown for a message that has more parts than its length justifies.
struct TooMany {
  std::string why;
};

/// A field of a message: its tag, the function for each occurrence, and the vector of a repeated field.
template <class Take, class Elements = std::vector<char>>
struct Field {
  std::uint32_t tag;
  Take take;
  Elements* elements = nullptr;
};
template <class Take>  // clang before 17 does not deduce the arguments of an aggregate
Field(std::uint32_t, Take)->Field<Take>;

/// A single field. Its last occurrence counts.
template <class Target, class Read>
auto one(std::uint32_t tag, Target& target, Read read) {
  return Field{tag, [&target, read](Reader& its) { target = static_cast<Target>(std::invoke(read, its)); }};
}

template <class Element, class Read>
auto many(std::uint32_t tag, std::vector<Element>& all, Read read) {
  const auto take = [&all, read](Reader& its) { all.push_back(static_cast<Element>(std::invoke(read, its))); };
  return Field<decltype(take), std::vector<Element>>{tag, take, &all};
}

/// Decodes messages whose structs take at most `most_bytes`. A message of two bytes may need a struct of a hundred.
class Decoder {
  /// Reserves the vectors of repeated fields, then decodes each known field.
  template <class... Fields>
  void decode(const Reader& message, const Fields&... fields) {
    (reserve(fields.elements, count(message, fields)), ...);
    Reader reader = message;
    while (reader.next()) {
      const auto tag = reader.tag_and_type();
      const bool is_known = ((tag == fields.tag && (fields.take(reader), true)) || ...);
      if (!is_known) reader.skip();
    }
  }

  template <class Any>
  static std::size_t count(Reader reader, const Any& field) {
    std::size_t found = 0;
    for (; field.elements != nullptr && reader.next(); reader.skip()) found += reader.tag_and_type() == field.tag;
    return found;
  }

  /// Makes room for `more` elements.
  template <class Element>
  void reserve(std::vector<Element>* elements, std::size_t more) {
    if (more == 0) return;
    if (more > left_ / sizeof(Element))
      throw TooMany{"its parts are so many and so small that they would take more than " + std::to_string(most_bytes_) +
                    " bytes"};
    left_ -= more * sizeof(Element);
    const std::size_t needed = elements->size() + more;
    if (needed > elements->capacity()) elements->reserve(std::max(needed, 2 * elements->capacity()));
  }

  /// A repeated field of numbers in packed form.
  template <class Element, class Read>
  auto packed(std::uint32_t number, std::vector<Element>& all, Read read) {
    return Field{bytes(number), [this, &all, read](Reader& its) {
                   const auto range = std::invoke(read, its);
                   reserve(&all, static_cast<std::size_t>(std::distance(range.begin(), range.end())));
                   for (auto at = range.begin(); at != range.end(); ++at) all.push_back(static_cast<Element>(*at));
                 }};
  }

  /// A field that is a message. Its last occurrence counts.
  template <class Message>
  auto message(std::uint32_t number, std::optional<Message>& target) {
    return Field{bytes(number), [this, &target](Reader& its) { fill(its.get_message(), target.emplace()); }};
  }

  template <class Message>
  auto messages(std::uint32_t number, std::vector<Message>& all) {
    const auto take = [this, &all](Reader& its) { fill(its.get_message(), all.emplace_back()); };
    return Field<decltype(take), std::vector<Message>>{bytes(number), take, &all};
  }

  /// An entry of external_data or metadata_props: a key and its value.
  std::pair<std::string_view, std::string_view> entry_of(const Reader& reader) {
    std::string_view key, value;
    decode(reader, one(bytes(1), key, view), one(bytes(2), value, view));
    return {key, value};
  }

  /// The value of the entry with that key.
  auto metadata(std::uint32_t number, std::string_view key, std::string_view& target) {
    return Field{bytes(number), [this, key, &target](Reader& its) {
                   if (const auto entry = entry_of(its.get_message()); entry.first == key) target = entry.second;
                 }};
  }

 public:
  explicit Decoder(std::size_t most_bytes) : most_bytes_(most_bytes), left_(most_bytes) {}

  void fill(const Reader& reader, TensorMessage& tensor) {
    const auto external = [&](Reader& its) {
      const auto [key, value] = entry_of(its.get_message());
      if (key == "location") tensor.location = value;
      if (key == "offset") tensor.offset = value;
      if (key == "length") tensor.length = value;
    };
    std::vector<double>& numbers = tensor.numbers;
    decode(reader, many(varint(1), tensor.dims, &Reader::get_int64), packed(1, tensor.dims, &Reader::get_packed_int64),
           one(varint(2), tensor.type, &Reader::get_int32), many(fixed32(4), numbers, &Reader::get_float),
           packed(4, numbers, &Reader::get_packed_float), many(varint(5), numbers, &Reader::get_int32),
           packed(5, numbers, &Reader::get_packed_int32), many(varint(7), numbers, &Reader::get_int64),
           packed(7, numbers, &Reader::get_packed_int64), many(fixed64(10), numbers, &Reader::get_double),
           packed(10, numbers, &Reader::get_packed_double), many(varint(11), numbers, &Reader::get_uint64),
           packed(11, numbers, &Reader::get_packed_uint64), one(bytes(8), tensor.name, view),
           one(bytes(9), tensor.raw, view), Field{bytes(13), external},
           one(varint(14), tensor.external, [](Reader& its) { return its.get_int32() == 1; }));
  }

  AttributeMessage attribute_of(std::string_view body) {
    AttributeMessage attribute{.name = {}, .body = body};
    decode(reader_of(body), one(bytes(1), attribute.name, view));
    return attribute;
  }

  void fill(const Reader& reader, NodeMessage& node) {
    const auto attribute = [&](Reader& its) { return attribute_of(view(its)); };
    decode(reader, many(bytes(1), node.inputs, view), many(bytes(2), node.outputs, view),
           one(bytes(3), node.name, view), one(bytes(4), node.op_type, view),
           many(bytes(5), node.attributes, attribute), one(bytes(7), node.domain, view),
           metadata(9, "pkg.torch.onnx.fx_node", node.traced));
  }

  void fill(const Reader& reader, DimMessage& dim) {
    decode(reader, one(varint(1), dim.value, &Reader::get_int64), one(bytes(2), dim.param, view));
  }

  void fill(const Reader& reader, std::vector<DimMessage>& dims) { decode(reader, messages(1, dims)); }

  void fill(const Reader& reader, ValueMessage& value) {
    const auto tensor = [&](Reader& its) {
      decode(its.get_message(), one(varint(1), value.type, &Reader::get_int32), message(2, value.shape));
    };
    const auto type = [&](Reader& its) { decode(its.get_message(), Field{bytes(1), tensor}); };
    decode(reader, one(bytes(1), value.name, view), Field{bytes(2), type},
           metadata(4, "pkg.onnxscript.optimizer.folded_from", value.folded_from));
  }

  void fill(const Reader& reader, GraphMessage& graph) {
    const auto sparse = [](Reader& its) { return its.skip(), true; };
    decode(reader, messages(1, graph.nodes), messages(5, graph.initializers), messages(11, graph.inputs),
           messages(12, graph.outputs), messages(13, graph.values), one(bytes(15), graph.sparse, sparse),
           metadata(16, "pkg.torch.export.ExportedProgram.graph_signature", graph.signature));
  }

  void fill(const Reader& reader, ModelMessage& model) {
    const auto opset = [&](Reader& its) {
      std::string_view domain;
      std::int64_t version = 0;
      decode(its.get_message(), one(bytes(1), domain, view), one(varint(2), version, &Reader::get_int64));
      if (domain.empty() || domain == "ai.onnx") model.opset = version;
    };
    decode(reader, one(bytes(2), model.producer, view), message(7, model.graph), Field{bytes(8), opset});
  }

  void fill(const Reader& reader, AttributeValue& value) {
    decode(reader, one(fixed32(2), value.number, &Reader::get_float), one(varint(3), value.integer, &Reader::get_int64),
           one(bytes(4), value.text, view), message(5, value.tensor), message(6, value.graph),
           many(fixed32(7), value.numbers, &Reader::get_float), packed(7, value.numbers, &Reader::get_packed_float),
           many(varint(8), value.integers, &Reader::get_int64), packed(8, value.integers, &Reader::get_packed_int64),
           many(bytes(9), value.texts, view));
  }

 private:
  std::size_t most_bytes_, left_;
};

/// Decodes a whole message. Its structs may take 8 times its length plus `more` bytes. In a real file they take no more
/// than its length.
template <class Message>
Message decoded(std::string_view bytes, std::size_t more, const std::string& file, const std::string& what) {
  try {
    Message message;
    Decoder(8 * bytes.size() + more).fill(reader_of(bytes), message);
    return message;
  } catch (const TooMany& error) {
    throw FileError(file + ": " + what + ": " + error.why);
  } catch (const protozero::exception& error) {
    throw FileError(file + ": " + what + " is truncated or not of ONNX's form (" + error.what() + ")");
  }
}

}  // namespace

ModelMessage decode_model(std::string_view bytes, const std::string& file) {
  return decoded<ModelMessage>(bytes, 192 << 10, file, "the model");
}

AttributeValue decode_attribute(const AttributeMessage& attribute, const std::string& file) {
  return decoded<AttributeValue>(attribute.body, 4 << 10, file, "an attribute");
}

}  // namespace lamina::onnx
