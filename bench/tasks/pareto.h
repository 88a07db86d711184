#pragma once
// Which of several ways to do one thing are worth having: not beaten in time, workspace and error together.

#include <cstddef>
#include <limits>
#include <vector>

#include "lib/tuning/tune.h"

namespace lamina::bench {

using Candidate = LayerTuning::Candidate;

struct Limits {
  std::size_t workspace_bytes = std::numeric_limits<std::size_t>::max();
  double max_error = std::numeric_limits<double>::infinity();
  bool deterministic = false;  ///< demanded
};

/// Deterministic is what is declared so and was not seen to be otherwise.
bool is_deterministic(const Measurement&);

bool within(const Measurement&, const Limits&);

/// The tuner's pick among the candidates within the limits.
LayerTuning::Picked pick_within(const LayerTuning&, const Limits&);

/// Whether `a` makes `b` pointless: needs no more workspace, errs no more, gives up no determinism, and is faster in
/// the rounds that both ran; or is tied with it in time and better in one of the others. Who left the race is tied with
/// none that stayed.
bool dominates(const Measurement& a, const Measurement& b);

/// By candidate: whether it ran and no other dominates it. Of equal ones that are tied, all stay.
std::vector<bool> not_beaten(const std::vector<Candidate>&);

}  // namespace lamina::bench
