// libFuzzer's target: any bytes as a model. Read, or one of the library's errors; anything else is a find.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "onnx/importer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lamina;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const OnnxOptions options{.most_computed_numbers = static_cast<std::int64_t>(size) + 65536};
  try {
    const onnx::ModelMessage model = onnx::decode_model(bytes, "fuzz");
    if (model.graph) onnx::Importer(model, options, "/nonexistent/fuzz.onnx").run();
  } catch (const Error&) {
  }
  return 0;
}
