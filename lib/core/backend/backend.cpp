// The default functions of a backend, which decline or refuse, and a unit of work as one line of text.

#include "lamina/backend.h"

#include <cmath>

#include "lamina/error.h"
#include "lib/core/text/enumerators.h"

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

std::string_view to_string(Math math) { return enumerator_name(math, "math", {"strict", "tf32"}); }

bool Backend::fuses(const Spec&, const Node&, int) const { return false; }
bool Backend::masks_dx(const Spec&, const Spec&) const { return false; }
bool Backend::takes_pitch(const Spec&) const { return false; }

void Backend::update(const Update&) { throw Unsupported(std::string(name()) + ": updates no parameters"); }

void Backend::check_overflow(const UpdateTensors&) { throw Unsupported(std::string(name()) + ": no loss scaling"); }

UpdateFactors corrected(UpdateFactors u, std::uint64_t number) {
  if (u.correction == UpdateFactors::Correction::none) return u;
  const auto n = static_cast<double>(number);
  const double first = 1 - std::pow(u.decay, n), root = std::sqrt(1 - std::pow(u.decay2, n));
  if (u.correction == UpdateFactors::Correction::adam) {
    u.rate /= first;
    u.root_scale = 1 / root;
  } else {
    u.rate = u.rate * root / first;
  }
  u.correction = UpdateFactors::Correction::none;
  return u;
}

void LossScale::next(bool finite) {
  inverse = 1 / static_cast<double>(scale);
  skips = finite ? 0 : 1;
  updates += finite ? 1 : 0;
  good = finite ? good + 1 : 0;
  if (!finite) scale = std::max(scale / 2, std::numeric_limits<float>::min());
  if (good < growth) return;
  good = 0;
  if (scale <= std::numeric_limits<float>::max() / 2) scale *= 2;
}

double Backend::peak_flops_per_second(DType) { return 0; }

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
