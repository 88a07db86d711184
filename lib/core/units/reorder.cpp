// The usual orders of a Reorder, and the copies that a Reorder is made of.

#include "reorder.h"

#include <algorithm>
#include <functional>

#include "lamina/error.h"

namespace lamina {
namespace {

/// a / b, where b divides a.
int share(const char* what, int a, int b) {
  if (b < 1 || a % b != 0)
    throw ShapeError(std::string(what) + ": " + std::to_string(a) + " is not a multiple of " + std::to_string(b));
  return a / b;
}

}  // namespace

Axes::Axes(std::initializer_list<int> numbers) {
  for (const int number : numbers) push_back(number);
}

void Axes::push_back(int number) {
  if (size_ == numbers_.size()) throw ShapeError("a reorder has more than 8 axes");
  numbers_[size_++] = number;
}

Reorder channel_shuffle(const Shape& x, int groups) {
  const int members = share("channel_shuffle: channels", x.c, groups);
  return {{groups, members, static_cast<int>(x.plane())}, {1, 0, 2}, x.c, {x.h, x.w}};
}

Reorder pixel_shuffle(const Shape& x, int factor) {
  const int channels = share("pixel_shuffle: channels", share("pixel_shuffle: channels", x.c, factor), factor);
  return {{channels, factor, factor, x.h, x.w}, {0, 3, 1, 4, 2}, channels, {x.h * factor, x.w * factor}};
}

Reorder pixel_unshuffle(const Shape& x, int factor) {
  const Size pixels = {share("pixel_unshuffle: rows", x.h, factor), share("pixel_unshuffle: columns", x.w, factor)};
  return {{x.c, pixels.h, factor, pixels.w, factor}, {0, 2, 4, 1, 3}, x.c * factor * factor, pixels};
}

std::vector<CopyAxis> copy_axes(const Reorder& op) {
  std::vector<std::int64_t> apart(op.extents.size(), 1);
  for (std::size_t i = apart.size(); i-- > 1;) apart[i - 1] = apart[i] * op.extents[i];
  std::vector<CopyAxis> axes;  // the innermost first
  std::int64_t to = 1;
  for (const int* at = op.order.end(); at-- != op.order.begin();) {
    const auto i = static_cast<std::size_t>(*at);
    const std::int64_t extent = op.extents[i];
    if (extent == 1) continue;
    if (!axes.empty() && apart[i] == axes.back().extent * axes.back().from)
      axes.back().extent *= extent;
    else
      axes.push_back({extent, apart[i], to});
    to *= extent;
  }
  if (axes.empty()) axes.push_back({1, 1, 1});
  std::ranges::reverse(axes);
  return axes;
}

std::vector<CopyAxis> inverse(std::vector<CopyAxis> axes) {
  for (CopyAxis& axis : axes) std::swap(axis.from, axis.to);
  std::ranges::sort(axes, std::greater{}, &CopyAxis::to);
  return axes;
}

int shuffled_groups(const Reorder& op) {
  const Axes& e = op.extents;
  const bool shuffles = e.size() == 3 && op.order == Axes{1, 0, 2} && e[2] == std::int64_t{op.pixels.h} * op.pixels.w;
  return shuffles ? e[0] : 0;
}

}  // namespace lamina
