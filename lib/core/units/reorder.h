#pragma once
// The copies that a Reorder is made of.

#include <cstdint>
#include <vector>

#include "lamina/op.h"

namespace lamina {

/// An axis of a copy: its extent, and how far apart its elements are in the source and in the target.
struct CopyAxis {
  std::int64_t extent, from, to;
};

/// The axes of the copy of one image, as few as possible but at least one; the innermost axis of y is last.
std::vector<CopyAxis> copy_axes(const Reorder&);

/// The copy back, the innermost axis of x last.
std::vector<CopyAxis> inverse(std::vector<CopyAxis>);

/// The groups of a channel shuffle; 0 for any other order.
int shuffled_groups(const Reorder&);

}  // namespace lamina
