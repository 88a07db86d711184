// Arithmetic on views: factors of axes are split and joined, never moved.

#include "view.h"

#include <algorithm>
#include <array>
#include <limits>

namespace lamina::onnx {
namespace {

/// Appends an innermost factor. If it continues its neighbour, the two are joined.
void append(Axis& axis, OnnxFactor factor) {
  if (factor.extent == 1) return;
  if (!axis.empty() && axis.back().stride == factor.extent * factor.stride) {
    axis.back() = {axis.back().extent * factor.extent, factor.stride};
  } else {
    axis.push_back(factor);
  }
}

}  // namespace

Axis axis(std::int64_t extent, std::int64_t stride) {
  Axis axis;
  append(axis, {extent, stride});
  return axis;
}

std::int64_t extent(const Axis& axis) {
  std::int64_t product = 1;
  for (const OnnxFactor& factor : axis) product *= factor.extent;
  return product;
}

Extents extents(const View& view) {
  Extents all;
  for (const Axis& axis : view) all.push_back(extent(axis));
  return all;
}

bool is_expanded(const View& view) {
  const auto repeats = [](const OnnxFactor& factor) { return factor.stride == 0; };
  return std::ranges::any_of(view, [&](const Axis& axis) { return std::ranges::any_of(axis, repeats); });
}

AxisLabels usual_labels(std::size_t rank) {
  if (rank == 1) return "c";
  if (rank <= 4) return std::string("nchw").substr(0, rank);
  return "nc" + std::string(rank - 3, 'h') + "w";
}

GraphLayout layout_of(const Extents& extents, const AxisLabels& labels) {
  constexpr std::string_view names = "nchw";
  std::array<std::int64_t, 4> whole = {1, 1, 1, 1};
  for (std::size_t i = 0; i < extents.size(); ++i) whole[names.find(labels[i])] *= extents[i];
  std::array<std::int64_t, 4> stride = {whole[1] * whole[2] * whole[3], whole[2] * whole[3], whole[3], 1};
  GraphLayout layout;
  const auto narrow = [](std::int64_t extent) {
    return extent > std::numeric_limits<int>::max() ? 0 : static_cast<int>(extent);
  };
  layout.shape = {narrow(whole[0]), narrow(whole[1]), narrow(whole[2]), narrow(whole[3])};
  layout.view.resize(extents.size());
  for (std::size_t i = extents.size(); i-- > 0;) {  // of axes with one label the last is the innermost
    std::int64_t& inner = stride[names.find(labels[i])];
    layout.view[i] = axis(extents[i], inner);
    inner *= extents[i];
  }
  return layout;
}

std::optional<View> with_extent(const View& view, std::size_t along, std::int64_t stride, std::int64_t extent) {
  const std::int64_t period = onnx::extent(view[along]) * stride;
  View result(view.size());
  for (std::size_t i = 0; i < view.size(); ++i)
    for (const OnnxFactor& factor : i == along ? onnx::axis(extent, stride) : view[i]) {
      const bool is_inner = i == along || factor.extent * factor.stride <= stride;
      if (!is_inner && factor.stride % period != 0) return std::nullopt;
      append(result[i], {factor.extent, is_inner ? factor.stride : factor.stride / period * extent * stride});
    }
  return result;
}

std::optional<View> reshaped(const View& view, const Extents& wanted) {
  Axis all;
  for (const Axis& axis : view) {
    for (const OnnxFactor& factor : axis) append(all, factor);
  }
  std::reverse(all.begin(), all.end());  // the outermost factor is taken from the back
  View result;
  for (std::int64_t left : wanted) {
    Axis axis;
    while (left > 1) {
      if (all.empty()) return std::nullopt;
      OnnxFactor& factor = all.back();
      if (left % factor.extent == 0) {
        append(axis, factor);
        left /= factor.extent;
        all.pop_back();
      } else if (factor.extent % left == 0) {
        const std::int64_t inner = factor.extent / left;
        append(axis, {left, factor.stride * inner});
        factor.extent = inner;
        left = 1;
      } else {
        return std::nullopt;
      }
    }
    result.push_back(std::move(axis));
  }
  return all.empty() ? std::optional(result) : std::nullopt;
}

std::optional<Axis> split(const Axis& axis, const Shape& shape) {
  Axis parts;
  for (OnnxFactor factor : axis) {
    for (const std::int64_t border : {shape.image(), shape.plane(), std::int64_t{shape.w}}) {
      const std::int64_t whole = factor.extent * factor.stride;
      if (factor.stride >= border || whole <= border) continue;
      if (border % factor.stride != 0 || whole % border != 0) return std::nullopt;
      parts.push_back({whole / border, border});
      factor.extent = border / factor.stride;
    }
    parts.push_back(factor);
  }
  return parts;
}

View reduced(const View& view, const std::vector<char>& over, bool keeps_axes, const Shape& before,
             const Shape& after) {
  const auto moved = [&](std::int64_t stride) {
    if (stride >= before.image()) return stride / before.image() * after.image();
    if (stride >= before.plane()) return stride / before.plane() * after.plane();
    return stride >= before.w ? stride / before.w * after.w : stride;
  };
  View result;
  for (std::size_t i = 0; i < view.size(); ++i) {
    if (over[i] && !keeps_axes) continue;
    result.emplace_back();
    if (over[i]) continue;
    const Axis parts = split(view[i], before).value();
    for (const OnnxFactor& factor : parts) append(result.back(), {factor.extent, moved(factor.stride)});
  }
  return result;
}

}  // namespace lamina::onnx
