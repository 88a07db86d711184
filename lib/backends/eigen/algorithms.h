#pragma once
// Taking one algorithm among several for a pass, as a Choice demands.

#include <functional>
#include <string>
#include <vector>

#include "common.h"

namespace lamina::eigen {

/// One way to do a pass.
struct Candidate {
  std::string algorithm;
  double max_error;  ///< |computed - exact| over the sum of |terms|, guaranteed
  std::function<Lowered::Step()> lower;
};

/// The candidate that the choice names or, where it names none, the first that respects its workspace and error limits.
/// `unit` opens the messages. Throws UsageError for an unknown name, Unsupported where nothing fits.
Lowered::Step pick(const std::string& unit, Pass, const Choice&, const std::vector<Candidate>&);

/// Whether the unit's tail is one ReLU; a convolution or fully connected op has no other.
inline bool ends_in_relu(const Spec& spec) { return !spec.tail.empty(); }

/// The unit of a convolution or fully connected op: its steps, and what they read.
Lowered assemble(const Spec&, const std::function<Lowered::Step(Pass)>& lower_pass);

/// Half the distance between 1 and the next number.
double unit_roundoff(DType);

}  // namespace lamina::eigen
