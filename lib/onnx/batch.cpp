// A batch that is a number of the file, in the shape that a Reshape asks for, where the options give another batch.

#include "extents.h"
#include "importer.h"

namespace lamina::onnx {
namespace {

/// The batch among the axes of a value: its axis, and the product of all extents that are further out.
struct Place {
  std::size_t axis = 0;
  std::int64_t outer = 1;
};

/// The outermost part of the graph's value, if that is divisible by the batch, else the first axis of its extent. A
/// batch of 1 leaves no trace, and counts as the first axis.
std::optional<Place> batch_of(const DynamicValue& x, std::int64_t batch) {
  if (batch == 1) return Place{};
  const std::int64_t all = *element_count(extents(x.view));
  std::optional<Place> equal;
  std::int64_t outer = 1;
  for (std::size_t i = 0; i < x.view.size(); ++i) {
    if (!equal && extent(x.view[i]) == batch) equal = Place{i, outer};
    for (const OnnxFactor& factor : x.view[i]) {
      if (factor.extent * factor.stride == all && factor.extent % batch == 0) return Place{i, outer};
      outer *= factor.extent;
    }
  }
  return equal;
}

}  // namespace

Extents NodeContext::with_batch(const DynamicValue& x, const Extents& wanted) const {
  const std::int64_t own = importer_->fixed_batch_, batch = importer_->options_.batch;
  Extents in_file = onnx::extents(x.view);
  if (own == 0 || in_file.empty()) return wanted;
  const std::optional<Place> place = batch_of(x, batch);
  if (!place) return wanted;
  const std::optional<std::int64_t> axis = element_count({in_file[place->axis] / batch, own});
  if (!axis) return wanted;
  in_file[place->axis] = *axis;
  Extents result = reshape_extents(attributes_, in_file, wanted);
  std::int64_t outer = 1;
  for (std::int64_t& extent : result) {
    if (outer == place->outer && extent % own == 0 && (own == 1 || extent > 1)) {
      const std::optional<std::int64_t> other = element_count({extent / own, batch});
      if (!other) return wanted;
      extent = *other;
      return result;
    }
    outer *= extent;
  }
  return wanted;
}

Constant NodeContext::one_image(const Constant& x, const Extents& wanted) const {
  const std::int64_t own = importer_->fixed_batch_, batch = importer_->options_.batch;
  std::int64_t inner = 1;  // numbers of an element of the axis
  for (std::size_t i = x.extents.size(); own > 1 && i-- > 0; inner *= x.extents[i]) {
    const std::size_t from_end = x.extents.size() - i;
    if (from_end > wanted.size() || x.extents[i] != own || wanted[wanted.size() - from_end] != batch) continue;
    Constant image = x;
    image.extents[i] = 1;
    if (!x.uniform) image.values.clear();
    for (std::int64_t k = 0; !x.uniform && k < x.count(); ++k) {
      const std::int64_t first = k - k / inner % own * inner;  // of the first image
      if (x.at(k) != x.at(first)) return x;
      if (k == first) image.values.push_back(x.at(k));
    }
    return image;
  }
  return x;
}

}  // namespace lamina::onnx
