// Replaces the file's batch, which is a number in the shape of a Reshape, by the batch of the options.

#include "node_context.h"

namespace lamina::onnx {
namespace {

/// The place of the batch among the axes of a value: its axis, and the product of all extents outside of it.
struct Place {
  std::size_t axis = 0;
  std::int64_t outer = 1;
};

/// The places where the batch may be. For a batch above 1: the axis with the outermost factor of the graph's value if
/// the batch divides that factor, else the first axis whose extent is the batch. A batch of 1 does not show in the
/// extents: all axes of one element or, without such an axis, all axes.
std::vector<Place> places_of_batch(const DynamicValue& x, std::int64_t batch) {
  const std::int64_t all = *element_count(extents(x.view));
  std::vector<Place> ones, every, equal;
  std::int64_t outer = 1;
  for (std::size_t i = 0; i < x.view.size(); ++i) {
    (extent(x.view[i]) == 1 ? ones : every).push_back({i, outer});
    if (equal.empty() && extent(x.view[i]) == batch) equal.push_back({i, outer});
    for (const OnnxFactor& factor : x.view[i]) {
      if (batch > 1 && factor.extent * factor.stride == all && factor.extent % batch == 0) return {{i, outer}};
      outer *= factor.extent;
    }
  }
  if (batch > 1) return equal;
  return ones.empty() ? every : ones;
}

}  // namespace

Extents NodeContext::with_batch(const DynamicValue& x, const Extents& wanted) const {
  const std::int64_t own = importer_->fixed_batch_, batch = importer_->options_.batch;
  const Extents extents = onnx::extents(x.view);
  if (own == 0 || extents.empty()) return wanted;
  const std::vector<Place> places = places_of_batch(x, batch);
  for (const int how : {0, 1, 2, 3})
    for (const Place& place : places) {
      const std::optional<std::int64_t> axis = element_count({extents[place.axis] / batch, own});
      if (!axis) return wanted;
      Extents in_file = extents;
      in_file[place.axis] = *axis;
      Extents result = reshape_extents(*this, in_file, wanted);
      std::int64_t outer = 1;
      for (std::int64_t& extent : result) {
        const bool begins = outer == place.outer, is_inside = place.outer % outer == 0 && outer < place.outer;
        const bool has_batch = how == 0   ? begins && extent == own  // an axis of its own
                               : how == 1 ? is_inside && outer * extent % (place.outer * own) == 0  // steps x batch
                               : how == 2 ? begins && extent % own == 0                             // batch x others
                                          : batch == 1 && extent == own;
        if (has_batch) {
          const std::optional<std::int64_t> other = element_count({extent / own, batch});
          if (!other) return wanted;
          extent = *other;
          return result;
        }
        outer *= extent;
      }
    }
  return wanted;
}

Constant NodeContext::one_image(const Constant& x, const Extents& wanted) const {
  const std::int64_t own = importer_->fixed_batch_, batch = importer_->options_.batch;
  std::int64_t inner = 1;  // product of the extents after axis i
  for (std::size_t i = x.extents.size(); own > 1 && i-- > 0; inner *= x.extents[i]) {
    const std::size_t from_end = x.extents.size() - i;
    if (from_end > wanted.size() || x.extents[i] != own || wanted[wanted.size() - from_end] != batch) continue;
    Constant image = x;
    image.extents[i] = 1;
    if (!x.uniform) image.values.clear();
    for (std::int64_t k = 0; !x.uniform && k < x.count(); ++k) {
      const std::int64_t first = k - k / inner % own * inner;  // the same number in the first image
      if (x.at(k) != x.at(first)) return x;
      if (k == first) image.values.push_back(x.at(k));
    }
    return image;
  }
  return x;
}

}  // namespace lamina::onnx
