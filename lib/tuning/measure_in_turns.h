#pragma once
// The answer of Tuner::measure: an algorithm for each pass of a unit, from one race per pass.

#include <cstddef>
#include <functional>
#include <string>

#include "lamina/tuning.h"

namespace lamina {

/// The place of a pass in Choice::algorithm.
inline std::size_t index_of(Pass pass) { return static_cast<std::size_t>(pass); }

/// Tuner::measure, for every pass of the unit that `choice` leaves open.
///
/// The answer names an algorithm for each pass that the unit has. But if no open pass has several algorithms, nothing
/// is measured, and the answer names the algorithms of `choice`. Throws Unsupported if the rule's pick does not fit
/// into `buffer`, or if no algorithm can run. `seen` receives the measurements of each open pass.
MeasuredChoice measure_in_turns(Backend&, const Spec&, const Choice&, void* buffer, std::size_t buffer_bytes,
                                const std::function<void(LayerTuning)>& seen = {});

/// Whether `choice` leaves a pass open for which the backend knows more than one algorithm.
bool leaves_open(const Backend&, const Spec&, const Choice&);

/// Why a unit cannot be measured in `buffer` bytes.
std::string lacks(std::size_t needed, std::size_t buffer);

}  // namespace lamina
