// Reading: the file's bytes, its messages, the graph.

#include <span>

#include "importer.h"
#include "lamina/error.h"
#include "lib/core/files/input_file.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  InputFile file(path);
  constexpr std::uint64_t longest = std::uint64_t{1} << 31;  // the format's own limit: beyond it is external data
  if (file.bytes() > longest)
    throw FileError(file.name() + ": longer than the 2 GB that a message of the format may be");
  std::string bytes(static_cast<std::size_t>(file.bytes()), '\0');
  file.read(std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

/// Calls `visit` with where each element is in the graph's order, in the file's order.
template <class Visit>
void walk(const OnnxValue& value, Visit visit) {
  std::vector<OnnxFactor> factors;
  for (const auto& axis : value.axes) factors.insert(factors.end(), axis.begin(), axis.end());
  std::vector<std::int64_t> at(factors.size(), 0);
  std::int64_t place = 0, count = 1;
  for (const OnnxFactor& factor : factors) count *= factor.extent;
  for (std::int64_t i = 0; i < count; ++i) {
    visit(static_cast<std::size_t>(i), static_cast<std::size_t>(place));
    for (std::size_t k = factors.size(); k-- > 0;) {
      place += factors[k].stride;
      if (++at[k] < factors[k].extent) break;
      place -= factors[k].stride * factors[k].extent;
      at[k] = 0;
    }
  }
}

void demand_count(const OnnxValue& value, std::size_t count) {
  const std::optional<std::int64_t> wanted = onnx::element_count(value.extents);
  if (!wanted || static_cast<std::size_t>(*wanted) != count) {
    throw UsageError("\"" + value.name + "\" has the extents " + onnx::text(value.extents) + ", but " +
                     std::to_string(count) + " numbers were given");
  }
}

/// Views of the bytes.
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

HostTensor read_onnx_tensor(const fs::path& path) {
  const std::string bytes = bytes_of(path);
  const onnx::TensorMessage message = onnx::decode_tensor(bytes, path.string());
  onnx::Constant constant = onnx::read_constant(message, path, path.string() + ": the tensor");
  const bool single = constant.type == onnx::ElementType::f32;
  return {.dtype = single ? DType::f32 : DType::f64,
          .extents = std::move(constant.extents),
          .values = std::move(constant.values)};
}

std::vector<double> to_graph(const OnnxValue& value, std::span<const double> numbers) {
  demand_count(value, numbers.size());
  std::vector<double> result(numbers.size());
  walk(value, [&](std::size_t i, std::size_t place) { result[place] = numbers[i]; });
  return result;
}

std::vector<double> from_graph(const OnnxValue& value, std::span<const double> numbers) {
  demand_count(value, numbers.size());
  std::vector<double> result(numbers.size());
  walk(value, [&](std::size_t i, std::size_t place) { result[i] = numbers[place]; });
  return result;
}

}  // namespace lamina
