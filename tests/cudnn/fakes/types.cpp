// Supported types, from NVIDIA's cuDNN backend API reference, version 9. The pages "cudnn_cnn Library" (convolutions)
// and "cudnn_ops Library" (other ops) have tables of supported configurations and list each call's errors.

#include "tests/cudnn/fakes/types.h"

#include <algorithm>
#include <sstream>

#include "lib/backends/cudnn/library/types.h"

namespace lamina::test {
namespace {

using namespace lamina::cudnn;

/// The types of tensors and filters, in the order of the arguments.
std::vector<std::string> types_of(const std::vector<std::string>& words) {
  std::vector<std::string> types;
  for (const std::string& word : words)
    if (const std::string type = word.substr(0, word.find(' ')); type != word)
      if (type == "f32" || type == "f64" || type == "f16" || type == "bf16") types.push_back(type);
  return types;
}

/// The compute type in the text of the descriptor of this kind: the word after `number` numbers.
std::string compute_type(const std::vector<std::string>& words, const std::string& kind, std::size_t number) {
  for (const std::string& word : words) {
    if (!word.starts_with(kind)) continue;
    std::istringstream numbers(word.substr(kind.size()));
    int value = -1;
    for (std::size_t i = 0; i <= number; ++i) numbers >> value;
    return type_text(value);
  }
  return {};
}

std::string parameters_of(const std::string& values) { return values == "f64" ? "f64" : "f32"; }

bool all_are(const std::vector<std::string>& types, const std::string& type) {
  return std::all_of(types.begin(), types.end(), [&](const std::string& each) { return each == type; });
}

}  // namespace

std::string type_text(int type) {
  switch (type) {
    case data_type::f32: return "f32";
    case data_type::f64: return "f64";
    case data_type::f16: return "f16";
    case data_type::bf16: return "bf16";
    default: return "no type";
  }
}

std::string unlisted_types(const std::string& call, const std::vector<std::string>& words, std::size_t version) {
  if (call == "SetTensor4dDescriptorEx" || call == "SetFilter4dDescriptor") {
    const std::string type = type_text(std::stoi(words[1]));
    // BFLOAT16 exists since cuDNN 8.1 (release notes).
    return type == "no type" || (type == "bf16" && version < 8100) ? "no such type" : "";
  }
  std::vector<std::string> types = types_of(words);
  if (types.empty()) return {};
  const std::string values = types.front();
  if (call.starts_with("BatchNormalization")) {
    // PSEUDO_HALF_CONFIG and PSEUDO_BFLOAT16_CONFIG have float parameters, whose descriptor is the last.
    if (types.back() != parameters_of(values)) return "parameters of " + types.back() + " with values of " + values;
    types.pop_back();
  }
  // If the types differ, the status is BAD_PARAM, also for TransformTensor, AddTensor and ConvolutionBackwardBias.
  if (!all_are(types, values)) return "descriptors of several types";
  if (call.find("Convolution") != std::string::npos && call != "ConvolutionBackwardBias") {
    // TRUE_HALF_CONFIG computes in f16. FLOAT, DOUBLE, PSEUDO_HALF and PSEUDO_BFLOAT16_CONFIG compute in the type of
    // parameters.
    const std::string compute = compute_type(words, "Convolution2dDescriptor ", 7);
    if (compute != parameters_of(values) && !(values == "f16" && compute == "f16"))
      return "compute type " + compute + " with values of " + values;
  }
  if (call == "OpTensor")
    if (const std::string compute = compute_type(words, "OpTensorDescriptor ", 1); compute != parameters_of(values))
      return "compute type " + compute + " with values of " + values;
  return {};
}

}  // namespace lamina::test
