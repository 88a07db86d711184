#pragma once
// ONNX models from a short text, written as bytes.

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::test {

using Extents = std::vector<std::int64_t>;
using Writer = protozero::pbf_writer;

/// A model from its text. The text has statements, with spaces, line ends or semicolons between them.
///
///   x[n, 3, ?]                       an f32 input; an extent with a name or ? is open
///   w[2, 2] = 1, 2, 3, 4             an f32 initializer; "= all 1" repeats a number, "= 5.." counts up from 5
///   s = {5, -1}                      an i64 initializer with one axis; s[2, 1] = {5, -1} has two axes
///   w[1, 1] @ (data.bin, 4, 4)       an initializer in another file, with offset and length in bytes
///   ~u[2, 3]                         the type and extents of a value (value_info)
///   a, b = Split<axis=1>(x, s) "cut" a node with its name; mine/Split is in the domain "mine"
///   return a, b                      the outputs; default: the first output of the last node
///   opset 12                         the opset; default: 17
///   producer pytorch                 the program that wrote the file
///   says PARAMETER w, b              the role of tensors, in the form of PyTorch's new exporter
///   folded w v, g                    the exporter computed w from the tensors v and g
///   traced "args = (%p_w)"           the exporter's traced call of the last node
///
/// An attribute is 1, 1.0, a text, a list of these in [], a graph {a = Relu(x)} or a tensor {[2] = 1, 2}.
struct Model {
  std::vector<std::string> nodes{}, initializers{}, inputs{}, outputs{}, values{};
  std::int64_t opset = 17;
  std::string producer{}, signature{};  ///< facts that PyTorch's exporters write
  Model() = default;
  inline Model(const std::string& text);
  Model(const char* text) : Model(std::string(text)) {}
};

/// The numbers, separated by commas.
inline std::string text(const Extents& numbers) {
  std::string all;
  for (const std::int64_t number : numbers) all += (all.empty() ? "" : ",") + std::to_string(number);
  return all;
}

/// An entry of metadata, as bytes.
inline std::string entry(std::string_view key, std::string_view value) {
  std::string bytes;
  Writer(bytes).add_string(1, key.data(), key.size());
  Writer(bytes).add_string(2, value.data(), value.size());
  return bytes;
}

inline std::string value(const std::string& name, const std::vector<std::string>& extents) {
  std::string shape, tensor, type, bytes;
  Writer dims(shape);
  for (const std::string& extent : extents) {
    Writer dim(dims, 1);
    if (std::isdigit(static_cast<unsigned char>(extent[0])) != 0) {
      dim.add_int64(1, std::stoll(extent));
    } else if (extent != "?") {
      dim.add_string(2, extent);
    }
  }
  Writer(tensor).add_int32(1, 1);
  Writer(tensor).add_message(2, shape);
  Writer(type).add_message(1, tensor);
  Writer(bytes).add_string(1, name);
  Writer(bytes).add_message(2, type);
  return bytes;
}

inline std::string graph_of(const Model& model) {
  std::string graph;
  Writer writer(graph);
  for (const std::string& its : model.nodes) writer.add_message(1, its);
  for (const std::string& its : model.initializers) writer.add_message(5, its);
  for (const std::string& its : model.inputs) writer.add_message(11, its);
  for (const std::string& its : model.outputs) writer.add_message(12, its);
  for (const std::string& its : model.values) writer.add_message(13, its);
  if (!model.signature.empty())
    writer.add_message(16, entry("pkg.torch.export.ExportedProgram.graph_signature", model.signature));
  return graph;
}

inline std::string bytes_of(const Model& model) {
  std::string bytes, opset;
  Writer(opset).add_string(1, "");
  Writer(opset).add_int64(2, model.opset);
  Writer file(bytes);
  file.add_int64(1, 8);
  file.add_string(2, model.producer);
  file.add_message(7, graph_of(model));
  file.add_message(8, opset);
  return bytes;
}

/// Parses the text of a model, statement by statement.
class ModelText {
 public:
  explicit ModelText(std::string_view text) : left_(text) {}

  void read(Model& model, char end) {
    std::string last;  // the first output of the last node
    while (!take(end)) statement(model, last);
    if (model.outputs.empty() && !model.nodes.empty()) model.outputs = {value(last, {})};
  }

 private:
  char next() {
    left_.remove_prefix(std::min(left_.find_first_not_of(" \n;"), left_.size()));
    return left_.empty() ? '\0' : left_[0];
  }

  bool take(char wanted) {
    if (next() != wanted) return false;
    left_.remove_prefix(left_.empty() ? 0 : 1);
    return true;
  }

  std::string until(const char* ends) {
    const std::size_t length = std::min(left_.find_first_of(ends), left_.size());
    const std::string found(left_.substr(0, length));
    left_.remove_prefix(length);
    return found;
  }

  /// The text up to the next character of the format. It may be empty.
  std::string word() {
    next();
    return until(" \n;,()[]<>{}=\"@");
  }

  std::vector<std::string> words(char end = '\0') {
    std::vector<std::string> all;
    if (end != '\0' && take(end)) return all;
    do all.push_back(word());
    while (take(','));
    if (end != '\0') expect(end);
    return all;
  }

  void expect(char wanted) {
    if (!take(wanted)) throw std::invalid_argument(std::string("no ") + wanted + " before: " + std::string(left_));
  }

  void statement(Model& model, std::string& last) {
    const std::vector<std::string> names = words();
    if (names[0] == "opset") {
      model.opset = std::stoll(word());
    } else if (names[0] == "return") {
      for (const std::string& name : words()) model.outputs.push_back(value(name, {}));
    } else if (names[0] == "producer") {
      model.producer = word();
    } else if (names[0] == "says") {
      const std::string role = word();
      for (const std::string& its : words()) model.signature += "p: " + role + " target='" + its + "'\nx: USER_INPUT\n";
    } else if (names[0] == "folded") {
      Writer(model.values.emplace_back()).add_string(1, word());
      std::string of;
      for (const std::string& name : words()) of += "'" + name + "', ";
      Writer(model.values.back()).add_message(4, entry("pkg.onnxscript.optimizer.folded_from", of));
    } else if (names[0] == "traced") {
      expect('"');
      Writer(model.nodes.back()).add_message(9, entry("pkg.torch.onnx.fx_node", until("\"")));
      expect('"');
    } else if (take('[')) {
      const std::vector<std::string> extents = words(']');
      const bool is_stated = names[0].starts_with('~');
      if (take('=')) {
        model.initializers.push_back(tensor(names[0], extents));
      } else if (take('@')) {
        model.initializers.push_back(external(names[0], extents));
      } else {
        (is_stated ? model.values : model.inputs).push_back(value(names[0].substr(is_stated ? 1 : 0), extents));
      }
    } else if (expect('='); next() == '{') {
      model.initializers.push_back(tensor(names[0], {}));
    } else {
      last = names[0];
      model.nodes.push_back(node(names));
    }
  }

  std::string node(const std::vector<std::string>& outputs) {
    std::string bytes;
    Writer writer(bytes);
    const std::string op = word();
    const std::size_t slash = op.find('/');
    if (slash != op.npos) writer.add_string(7, op.substr(0, slash));
    writer.add_string(4, op.substr(slash + 1));
    if (take('<')) do
        writer.add_message(5, attribute());
      while (!take('>') && take(','));
    expect('(');
    for (const std::string& input : words(')')) writer.add_string(1, input);
    for (const std::string& output : outputs) writer.add_string(2, output);
    if (take('"')) writer.add_string(3, until("\"")), expect('"');
    return bytes;
  }

  static bool is_number(const std::string& text) { return text.find_first_of("-0123456789") == 0; }
  static bool is_whole(const std::string& text) { return text.find_first_of(".e") == text.npos; }

  std::string attribute() {
    std::string body;
    Writer writer(body);
    writer.add_string(1, word());
    expect('=');
    if (take('{')) {
      Model inner;
      read(inner, '}');
      const bool is_tensor = inner.nodes.empty();
      writer.add_message(is_tensor ? 5 : 6, is_tensor ? inner.initializers.at(0) : graph_of(inner));
      return body;
    }
    const bool is_list = take('[');
    for (const std::string& each : is_list ? words(']') : std::vector{word()}) {
      if (!is_number(each)) {
        writer.add_string(is_list ? 9 : 4, each);
      } else if (is_whole(each)) {
        writer.add_int64(is_list ? 8 : 3, std::stoll(each));
      } else {
        writer.add_float(is_list ? 7 : 2, std::stof(each));
      }
    }
    return body;
  }

  static void begin_tensor(Writer& writer, const std::string& name, const Extents& extents, std::int32_t type) {
    writer.add_packed_int64(1, extents.begin(), extents.end());
    writer.add_int32(2, type);
    writer.add_string(8, name);
  }

  static Extents numbers(const std::vector<std::string>& words) {
    Extents all;
    for (const std::string& each : words) all.push_back(std::stoll(each));
    return all;
  }

  std::string tensor(const std::string& name, const std::vector<std::string>& dims) {
    std::string bytes;
    Writer writer(bytes);
    if (take('{')) {
      const Extents values = numbers(words('}'));
      begin_tensor(writer, name, dims.empty() ? Extents{static_cast<std::int64_t>(values.size())} : numbers(dims), 7);
      writer.add_packed_int64(7, values.begin(), values.end());
      return bytes;
    }
    const Extents extents = numbers(dims);
    std::vector<float> values;
    std::string first = word();
    const bool alike = first == "all", counts = first.ends_with("..");
    std::int64_t count = 1;
    if (alike || counts)
      for (const std::int64_t extent : extents) count *= extent;
    if (alike) first = word();
    values.push_back(std::stof(first));
    while (take(',')) values.push_back(std::stof(word()));
    while ((alike || counts) && static_cast<std::int64_t>(values.size()) < count)
      values.push_back(values.back() + (counts ? 1.F : 0.F));
    begin_tensor(writer, name, extents, 1);
    writer.add_bytes(9, reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    return bytes;
  }

  std::string external(const std::string& name, const std::vector<std::string>& dims) {
    std::string bytes;
    Writer writer(bytes);
    begin_tensor(writer, name, numbers(dims), 1);
    expect('(');
    const std::vector<std::string> where = words(')');
    constexpr const char* keys[] = {"location", "offset", "length"};
    for (std::size_t i = 0; i < where.size(); ++i)
      if (!where[i].empty()) writer.add_message(13, entry(keys[i], where[i]));
    writer.add_int32(14, 1);
    return bytes;
  }

  std::string_view left_;
};

inline Model::Model(const std::string& text) { ModelText(text).read(*this, '\0'); }

}  // namespace lamina::test
