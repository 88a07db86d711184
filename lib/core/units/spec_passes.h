#pragma once
// Which passes a unit needs steps for.

#include <algorithm>

#include "lamina/backend.h"

namespace lamina {

/// Whether a unit needs a step for the pass. It does for forward and prepare. In training it also does for recompute,
/// for backward_params if there are parameters, and for backward_data if the gradient of any input is wanted.
inline bool wants(const Spec& spec, Pass pass) {
  if (pass == Pass::forward || pass == Pass::prepare) return true;
  if (spec.mode != Mode::training || pass == Pass::recompute) return spec.mode == Mode::training;
  return pass == Pass::backward_params ? !spec.w.empty()
                                       : std::ranges::find(spec.wants_dx, true) != spec.wants_dx.end();
}

}  // namespace lamina
