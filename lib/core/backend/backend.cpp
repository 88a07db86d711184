// The default functions of a backend: they decline or refuse.

#include "lamina/backend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "lamina/error.h"

namespace lamina {

std::string_view to_string(Math math) {
  switch (math) {
    case Math::strict: return "strict";
    case Math::tf32: return "tf32";
  }
  throw UsageError("no such math: " + std::to_string(static_cast<int>(math)));
}

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

}  // namespace lamina
