// Pools. Windows begin at the pad of the front: the pad of the end only says how many there are.

#include <algorithm>
#include <limits>

#include "lrn.h"
#include "windows.h"

namespace lamina::onnx {
namespace {

struct Pool {
  Windows windows;
  Value image;
  View view;
};

Pool pool_of(const Call& call, const Running& x) {
  const Attributes& node = call.attributes();
  if (x.view.size() < 3) node.invalid("has an input of " + text(extents(x.view)));
  if (x.view.size() > 4) {
    throw Refusal{"its input has " + std::to_string(x.view.size()) + " axes: it would need an op for pools in space"};
  }
  Pool pool{.windows = windows_of(call, x, std::nullopt), .image = as_image(x), .view = {}};
  for (const Windows::Along& a : pool.windows.along) {
    if (a.dilation != 1) throw Refusal{"its windows are dilated: it would need an op for such pools"};
  }
  Extents result = extents(x.view);
  for (std::size_t i = 0; i + 2 < result.size(); ++i) result[i + 2] = pool.windows[i].count;
  pool.view = place(result, usual_roles(result.size())).view;
  return pool;
}

/// A rounding with which equal pads, those of the front, make as many windows; Refusal if none does.
Rounding equal_pads(const Windows& windows) {
  const auto fits = [&](Rounding rounding) {
    return std::all_of(windows.along.begin(), windows.along.end(),
                       [&](const Windows::Along& a) { return a.count_with(a.begin, rounding) == a.count; });
  };
  const Rounding other = windows.rounding == Rounding::up ? Rounding::down : Rounding::up;
  if (fits(windows.rounding)) return windows.rounding;
  if (fits(other)) return other;
  throw Refusal{"its pads differ at the two ends in a way that no rounding expresses: it would need an op Pad"};
}

}  // namespace

void import_max_pool(Call& call) {
  call.only_output("an op that gives indices");
  const Running& x = call.padded(0);
  const Pool pool = pool_of(call, x);
  if (x.padding && !(x.padding->number == -std::numeric_limits<double>::infinity())) {
    throw Refusal{"its input is padded with numbers that could be the largest: it would need an op Pad"};
  }
  const Value y = call.append(MaxPool{.window = pool.windows.kernel(),
                                      .stride = pool.windows.stride(),
                                      .pad = pool.windows.begin(),
                                      .rounding = equal_pads(pool.windows)},
                              {pool.image}, call.name());
  call.result({.value = y, .view = pool.view, .type = x.type});
}

void import_average_pool(Call& call) {
  if (mean_of_squares(call)) return;
  const Attributes& node = call.attributes();
  const Running& x = call.padded(0);
  bool count_padding = node.integer("count_include_pad", 0) != 0;
  if (x.padding) {
    // Zeros that a Pad has put there count, those of the pool's own pads only if it says so.
    const Extents own = node.integers("pads").value_or(Extents{});
    const bool pads = std::any_of(own.begin(), own.end(), [](std::int64_t pad) { return pad != 0; });
    if ((pads && !count_padding) || x.padding->number != 0) {
      throw Refusal{"its input is padded before its own pads: it would need an op Pad"};
    }
    count_padding = true;
  }
  const Pool pool = pool_of(call, x);
  for (const Windows::Along& a : pool.windows.along) {
    const std::int64_t reach = (a.count - 1) * a.stride - a.begin + a.span();  // of the last window
    if (count_padding && a.begin != a.end && reach > a.input + std::min(a.begin, a.end)) {
      throw Refusal{"it counts pads that differ at the two ends: it would need an op Pad"};
    }
  }
  const Value y = call.append(AveragePool{.window = pool.windows.kernel(),
                                          .stride = pool.windows.stride(),
                                          .pad = pool.windows.begin(),
                                          .rounding = equal_pads(pool.windows),
                                          .count_padding = count_padding},
                              {pool.image}, call.name());
  call.result({.value = y, .view = pool.view, .type = x.type});
}

namespace {

/// The view of one number per channel, with the pixels' axes or without.
View of_channels(const Shape& shape, std::size_t rank) {
  Extents result = {shape.n, shape.c};
  result.resize(rank, 1);
  return place(result, usual_roles(rank)).view;
}

}  // namespace

void import_global_average_pool(Call& call) {
  const Running& x = call.running(0);
  const Value image = as_image(x);
  const Value y = call.append(GlobalAveragePool{}, {image}, call.name());
  call.result({.value = y, .view = of_channels(image.shape(), x.view.size()), .type = x.type});
}

void import_global_max_pool(Call& call) {
  const Running& x = call.running(0);
  const Value image = as_image(x);
  const Size all = {image.shape().h, image.shape().w};
  const Value y = call.append(MaxPool{.window = all, .stride = all}, {image}, call.name());
  call.result({.value = y, .view = of_channels(image.shape(), x.view.size()), .type = x.type});
}

/// ReduceMean over all pixels.
void import_reduce_mean(Call& call) {
  const Attributes& node = call.attributes();
  const Running& x = call.running(0);
  std::optional<Extents> axes = node.integers("axes");
  if (!axes && call.has(1)) axes = integers(call.constant(1, "its axes"));
  std::vector<char> over(x.view.size(), 0);
  for (const std::int64_t axis : axes.value_or(Extents{})) over[axis_of(node, axis, over.size())] = 1;
  const Value image = as_image(x);
  bool pixels = over.size() > 2 && !over[0] && !over[1];
  for (std::size_t i = 2; i < over.size(); ++i) pixels = pixels && over[i];
  if (!pixels)
    throw Refusal{"it takes the mean over other axes than all rows and columns: it would need an op ReduceMean"};
  const Value y = call.append(GlobalAveragePool{}, {image}, call.name());
  const bool keeps = node.integer("keepdims", 1) != 0;
  call.result({.value = y, .view = of_channels(image.shape(), keeps ? x.view.size() : 2), .type = x.type});
}

}  // namespace lamina::onnx
