// A unit of work as one line of text.

#include <string>

#include "lamina/backend.h"

namespace lamina {
namespace {

std::string text(const TensorSpec& tensor) {
  std::string line = to_string(tensor.shape) + " " + std::string(to_string(tensor.dtype)) + " " +
                     std::string(to_string(tensor.layout));
  const std::int64_t dense = dense_pitch(tensor.shape, tensor.layout);
  if (tensor.pitch != dense) line += " pitch " + std::to_string(tensor.pitch);
  if (tensor.gradient_pitch != dense) line += " gradient pitch " + std::to_string(tensor.gradient_pitch);
  return line;
}

void append(std::string& line, const char* what, const std::vector<TensorSpec>& tensors) {
  for (const TensorSpec& tensor : tensors) line += std::string(", ") + what + " " + text(tensor);
}

/// ", dx 10" for two inputs of which only the first has the flag; empty without flags.
void append(std::string& line, const char* what, const std::vector<bool>& flags) {
  if (flags.empty()) return;
  line += std::string(", ") + what + " ";
  for (const bool flag : flags) line += flag ? '1' : '0';
}

}  // namespace

std::string to_string(const Spec& spec) {
  std::string line = to_string(spec.op);
  for (const Op& op : spec.tail) line += " + " + to_string(op);
  append(line, "x", spec.x);
  line += ", y " + text(spec.y);
  append(line, "w", spec.w);
  append(line, "state", spec.state);
  line += spec.mode == Mode::training ? ", training" : ", inference";
  append(line, "wants dx", spec.wants_dx);
  append(line, "adds dx", spec.adds_dx);
  if (spec.adds_dw) line += ", adds dw";
  if (spec.masks_dx) line += ", masks dx";
  if (spec.dy_is_masked) line += ", dy is masked";
  return line;
}

}  // namespace lamina
