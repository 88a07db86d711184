#pragma once
// Which passes of a unit run.

#include <algorithm>

#include "lamina/backend.h"

namespace lamina {

/// Whether the pass of a unit can be needed, if a step covers it: forward and prepare always, and in training
/// recompute, backward_params if there are parameters, and backward_data if the gradient of any input is wanted.
inline bool wants(const Spec& spec, Pass pass) {
  if (pass == Pass::forward || pass == Pass::prepare) return true;
  if (spec.mode != Mode::training || pass == Pass::recompute) return spec.mode == Mode::training;
  return pass == Pass::backward_params ? !spec.w.empty()
                                       : std::ranges::find(spec.wants_dx, true) != spec.wants_dx.end();
}

}  // namespace lamina
