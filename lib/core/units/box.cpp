// Parts of images.

#include "box.h"

namespace lamina {
namespace {

/// Joins the innermost axis with the next outer axis while a common step leads through both.
Box joined(Box box) {
  auto& [outer, middle, inner] = box.axes;
  for (int joins = 0; joins < 2; ++joins) {
    const bool is_one = inner.part == 1, is_periodic = inner.part * inner.step == inner.whole && middle.step == 1;
    if (!is_one && !is_periodic) break;
    inner = {middle.part * inner.part, middle.whole * inner.whole, middle.first * inner.whole + inner.first,
             is_one ? middle.step * inner.whole : inner.step};
    middle = outer;
    outer = {1, 1, 0, 1};
  }
  return box;
}

}  // namespace

int& extent_of(Shape& shape, Axis axis) {
  return axis == Axis::channel ? shape.c : axis == Axis::row ? shape.h : shape.w;
}

std::string_view axis_name(Axis axis) {
  return axis == Axis::channel ? "channels" : axis == Axis::row ? "rows" : "columns";
}

std::int64_t Box::apart(std::size_t axis) const {
  std::int64_t elements = axes[axis].step;
  for (std::size_t inner = axis + 1; inner < axes.size(); ++inner) elements *= axes[inner].whole;
  return elements;
}

std::int64_t Box::offset() const {
  return (axes[0].first * axes[1].whole + axes[1].first) * axes[2].whole + axes[2].first;
}

bool Box::is_run() const { return axes[0].part * axes[1].part == 1 && (axes[2].step == 1 || axes[2].part == 1); }

Box box_of(const Slice& op, const Shape& x) {
  Box box{{{{x.c, x.c, 0, 1}, {x.h, x.h, 0, 1}, {x.w, x.w, 0, 1}}}};
  Box::Along& its = box.axes[static_cast<std::size_t>(op.axis)];
  its = {op.count, its.whole, op.first, op.count == 1 ? 1 : op.step};
  return joined(box);
}

Box box_of(const Pad& op, const Shape& x, const Shape& y) {
  return joined({{{{x.c, y.c, op.channels_before, 1}, {x.h, y.h, op.before.h, 1}, {x.w, y.w, op.before.w, 1}}}});
}

std::vector<Box> boxes_of(const Concat& op, const Spec& spec) {
  std::vector<Box> boxes;
  Slice part{.axis = op.axis, .first = 0, .count = 0};
  for (const TensorSpec& x : spec.x) {
    Shape shape = x.shape;
    part.count = extent_of(shape, op.axis);
    boxes.push_back(box_of(part, spec.y.shape));
    part.first += part.count;
  }
  return boxes;
}

bool may_be_view(const Op& op) {
  if (const auto* const slice = std::get_if<Slice>(&op)) return slice->axis == Axis::channel && slice->step == 1;
  const auto* const concat = std::get_if<Concat>(&op);
  return concat != nullptr && concat->axis == Axis::channel;
}

}  // namespace lamina
