#pragma once
// Axes of images, and parts of images: what a Slice takes, an input of a Concat inside y, the image inside a Pad.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lamina/backend.h"

namespace lamina {

int& extent_of(Shape&, Axis);
std::string_view axis_name(Axis);  ///< "channels"

/// Where the elements of a part lie in a whole image. Element i of an axis of the part is element first + i step of
/// that axis of the whole. The innermost axis is last. Neighbouring axes with one common step are joined into one axis.
struct Box {
  struct Along {
    std::int64_t part, whole, first, step;
  };
  std::array<Along, 3> axes;

  std::int64_t apart(std::size_t axis) const;  ///< distance of neighbours along this axis, in elements of the whole
  std::int64_t offset() const;                 ///< index in the whole of the part's first element
  bool is_run() const;                         ///< whether the part's elements follow each other in the whole
};

Box box_of(const Slice&, const Shape& x);
Box box_of(const Pad&, const Shape& x, const Shape& y);  ///< the place of x in y
std::vector<Box> boxes_of(const Concat&, const Spec&);   ///< the place of each x in y

/// Whether a plan may make the op a view: a Concat or a Slice of consecutive channels.
bool may_be_view(const Op&);

}  // namespace lamina
