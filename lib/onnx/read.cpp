// Reading a file: its bytes, its messages, its graph.

#include "importer.h"
#include "lamina/error.h"
#include "lib/core/files/input_file.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  InputFile file(path);
  constexpr std::uint64_t longest = std::uint64_t{1} << 31;  // the format's limit; larger models have external data
  if (file.bytes() > longest)
    throw FileError(file.name() + ": longer than the 2 GB that a message of the format may be");
  std::string bytes(static_cast<std::size_t>(file.bytes()), '\0');
  file.read(std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

/// Calls visit(place in the graph's order, place in the file's order) for each element of a value of `count` elements.
template <class Visit>
void walk(const OnnxValue& value, std::size_t count, Visit visit) {
  const std::optional<std::int64_t> wanted = onnx::element_count(value.extents);
  if (!wanted || static_cast<std::size_t>(*wanted) != count)
    throw UsageError("\"" + value.name + "\" has the extents " + onnx::text(value.extents) + ", but " +
                     std::to_string(count) + " numbers were given");
  onnx::Axis factors;
  for (const onnx::Axis& axis : value.axes) factors.insert(factors.end(), axis.begin(), axis.end());
  std::size_t i = 0;
  onnx::for_each_place(factors, 0, [&](std::int64_t place) { visit(static_cast<std::size_t>(place), i++); });
}

/// The message is a view of the bytes.
onnx::ModelMessage model_of(const std::string& bytes, const fs::path& path) {
  onnx::ModelMessage model = onnx::decode_model(bytes, path.string());
  if (!model.graph) throw FileError(path.string() + ": no graph in it: not an ONNX model");
  return model;
}

}  // namespace

OnnxModel read_onnx(const fs::path& path, const OnnxOptions& options) {
  const std::string bytes = bytes_of(path);
  const onnx::ModelMessage model = model_of(bytes, path);
  if (options.batch < 0) throw UsageError("OnnxOptions::batch is " + std::to_string(options.batch));
  return onnx::Importer(model, options, path).run();
}

std::vector<OnnxOpenExtent> onnx_open_extents(const fs::path& path) {
  const std::string bytes = bytes_of(path);
  const onnx::ModelMessage model = model_of(bytes, path);
  return onnx::Importer(model, {}, path).open_extents_of_all();
}

std::vector<double> to_graph(const OnnxValue& value, std::span<const double> numbers) {
  std::vector<double> result(numbers.size());
  walk(value, numbers.size(), [&](std::size_t place, std::size_t i) { result[place] = numbers[i]; });
  return result;
}

std::vector<double> from_graph(const OnnxValue& value, std::span<const double> numbers) {
  std::vector<double> result(numbers.size());
  walk(value, numbers.size(), [&](std::size_t place, std::size_t i) { result[i] = numbers[place]; });
  return result;
}

}  // namespace lamina
