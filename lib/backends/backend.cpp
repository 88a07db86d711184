// The defaults of a backend: refuse every offer.

#include "lamina/backend.h"

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
bool Backend::takes_pitch(const Spec&) const { return false; }

MeasuredChoice Backend::measure(const Spec&, const Choice&, void*, std::size_t) {
  throw Unsupported(std::string(name()) + ": picks algorithms by rule only; leave Choice::measure off or name one");
}

void Backend::update(const Update&) { throw Unsupported(std::string(name()) + ": updates no parameters"); }

double Backend::peak_flops_per_second(DType) { return 0; }

}  // namespace lamina
