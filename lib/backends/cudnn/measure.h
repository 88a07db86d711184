#pragma once
// Timing of a convolution's algorithms, and what is made of the times.

#include <string>
#include <vector>

#include "common.h"

namespace lamina::cudnn {

/// What one algorithm took for one pass, over all samples.
struct Timing {
  std::string algorithm;
  double median = 0, least = 0, most = 0;  ///< seconds
  std::size_t workspace_bytes = 0;
  bool tied = false;      ///< its samples overlap those of the fastest
  std::string refused{};  ///< why it has no times, or nothing
};

/// What a measurement saw of one unit and pass, and took.
struct Measured {
  Spec spec;
  Pass pass;
  std::vector<Timing> timings;  ///< the one that was taken first, then by their medians; the refused last
};

/// Sorts: the fastest first; among those tied with it, whose interval from least to most sample overlaps its own, the
/// one with the least workspace leads, and the earlier one where that is equal, so that noise decides nothing.
void rank(std::vector<Timing>&);

/// Bytes that the tensors and blocks of the unit take, each aligned.
std::size_t tensor_bytes(const Spec&, const Lowered&);

/// Times one step on its device, in lent memory: some runs ahead, then samples, each between two events.
Timing time_step(const Spec&, const Lowered&, const Lowered::Step&, Device&, void* lent);

}  // namespace lamina::cudnn
