// Pools. Windows begin at the pad of the front: the pad of the end only says how many there are. What MaxPool and
// AveragePool lack is a SpacePool.

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "lrn.h"
#include "windows.h"

namespace lamina::onnx {
namespace {

struct Pool {
  Windows windows;
  Value image;
  int slices = 1;
  View view;
};

Pool pool_of(const Call& call, const Running& x) {
  const Attributes& node = call.attributes();
  if (x.view.size() < 3) node.invalid("has an input of " + text(extents(x.view)));
  if (x.view.size() > 5) {
    throw Refusal{"its input has " + std::to_string(x.view.size()) + " axes: it would need an op for such pools"};
  }
  Pool pool{.windows = windows_of(call, x, std::nullopt), .image = as_volume(x), .slices = 1, .view = {}};
  const bool slices = x.view.size() == 5;
  Extents result = extents(x.view);
  if (slices) pool.slices = static_cast<int>(std::exchange(result[2], pool.windows.slices.count));
  const std::size_t rows = slices ? 3 : 2;
  for (std::size_t i = rows; i < result.size(); ++i) result[i] = pool.windows[i - rows].count;
  pool.view = place(result, slices ? "ncchw" : usual_roles(result.size())).view;
  return pool;
}

/// Whether only a SpacePool has such windows: dilated ones, or over slices.
bool in_space(const Pool& pool) {
  const auto dilated = [](const Windows::Along& a) { return a.dilation != 1; };
  return pool.slices > 1 || pool.windows.slices.kernel > 1 || pool.windows.slices.count > 1 ||
         pool.windows.slices.begin > 0 || std::any_of(pool.windows.along.begin(), pool.windows.along.end(), dilated);
}

/// A rounding with which equal pads, those of the front, make as many windows; nothing if none does, or a pad is too
/// large for the ops.
std::optional<Rounding> equal_pads(const Windows& windows) {
  const auto small = [](const Windows::Along& a) { return 2 * a.begin <= a.kernel; };
  if (!std::all_of(windows.along.begin(), windows.along.end(), small)) return std::nullopt;
  for (const Rounding rounding : {windows.rounding, Rounding::down, Rounding::up}) {
    const auto fits = [&](const Windows::Along& a) { return a.count_with(a.begin, rounding) == a.count; };
    if (std::all_of(windows.along.begin(), windows.along.end(), fits)) return rounding;
  }
  return std::nullopt;
}

/// Pads the image by an op: the pool then pads nothing. Not `counted`: as far as its windows reach, else by its pads.
void append_pad(Call& call, Pool& pool, double number, bool counted) {
  std::array<int, 2> before{}, after{};
  for (std::size_t i = 0; i < 2; ++i) {
    Windows::Along& a = pool.windows[i];
    const std::int64_t reach = (a.count - 1) * a.stride + a.span() - a.begin - a.input;
    before[i] = narrow(call, a.begin, 0, "pad");
    after[i] = narrow(call, counted ? a.end : std::max<std::int64_t>(reach, 0), 0, "pad");
    a.input += before[i] + after[i];
    a.begin = a.end = 0;
  }
  pool.image = call.append(Pad{.before = {before[0], before[1]}, .after = {after[0], after[1]}, .value = number},
                           {pool.image}, call.name() + ".pad");
}

/// The pool as a SpacePool, which has any windows.
Value space_pool_of(Call& call, const Pool& pool, PoolOf of, bool counted, const std::string& name) {
  const Windows& windows = pool.windows;
  const auto axis = [&](const Windows::Along& a) {
    return PoolAxis{.size = narrow(call, a.kernel, 1, "kernel"),
                    .stride = narrow(call, a.stride, 1, "stride"),
                    .before = narrow(call, a.begin, 0, "pad"),
                    .after = narrow(call, a.end, 0, "pad"),
                    .dilation = narrow(call, a.dilation, 1, "dilation")};
  };
  SpacePool op{.of = of,
               .depth = axis(windows.slices),
               .rows = axis(windows[0]),
               .columns = axis(windows[1]),
               .slices = pool.slices,
               .count_padding = counted};
  Shape shape = pool.image.shape();
  shape.c = narrow(call, shape.c / pool.slices * windows.slices.count, 1, "number of slices");
  shape.h = narrow(call, windows[0].count, 1, "number of windows");
  shape.w = narrow(call, windows[1].count, 1, "number of windows");
  for (const Rounding rounding : {Rounding::down, Rounding::up}) {
    op.rounding = rounding;
    if (infer(op, {pool.image.shape()}).y == shape) return call.append(op, {pool.image}, name);
  }
  throw Refusal{"no rounding expresses the number of its windows: it would need an op for such pools"};
}

void append_space_pool(Call& call, const Pool& pool, PoolOf of, bool counted, ElementType type) {
  const Value y = space_pool_of(call, pool, of, counted, call.name());
  call.result({.value = y, .view = pool.view, .type = type});
}

/// Whether a Pad before the pool can be its own pads. Rounded up, windows that start in a pad are not there, but in the
/// result of a Pad they are.
bool takes_over_pads(const Attributes& node) { return !pads_itself(node) && node.integer("ceil_mode", 0) == 0; }

/// The second output of a MaxPool: indices in its whole input.
void append_places(Call& call) {
  constexpr std::int64_t exact_in_f32 = 1 << 24;
  const Pool pool = pool_of(call, call.running(0));
  if (call.attributes().integer("storage_order", 0) != 0)
    throw Refusal{"its indices count by columns: it would need an op that does"};
  if (pool.image.shape().count() > exact_in_f32)
    throw Refusal{"its indices are beyond 2^24, and not exact in f32: it would need whole numbers"};
  const Value y = space_pool_of(call, pool, PoolOf::place, false, std::string(call.attributes().node().outputs[1]));
  call.result({.value = y, .view = pool.view, .type = ElementType::i64}, 1);
}

/// Where a single window reaches beyond the image, one that ends with it has the same mean.
void shorten_single(Windows::Along& a) {
  if (a.count != 1 || a.begin >= a.kernel) return;
  a.kernel = std::min(a.kernel - a.begin, a.input);
  a.stride = a.input;
  a.begin = a.end = 0;
}

}  // namespace

void import_max_pool(Call& call) {
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  const bool places = call.wanted(1);
  if (places) append_places(call);
  if (places && !call.wanted(0)) return;
  const std::optional<Padding> padding = call.padded(0).padding;
  const bool own = padding && padding->number == lowest && takes_over_pads(call.attributes());
  const Running& x = own ? call.padded(0) : call.running(0);
  Pool pool = pool_of(call, x);
  if (in_space(pool)) return append_space_pool(call, pool, PoolOf::maximum, false, x.type);
  std::optional<Rounding> rounding = equal_pads(pool.windows);
  if (!rounding) {
    append_pad(call, pool, lowest, false);
    rounding = equal_pads(pool.windows);  // always found: without pads, rounding down gives these windows
  }
  const Value y = call.append(MaxPool{.window = pool.windows.kernel(),
                                      .stride = pool.windows.stride(),
                                      .pad = pool.windows.begin(),
                                      .rounding = *rounding},
                              {pool.image}, call.name());
  call.result({.value = y, .view = pool.view, .type = x.type});
}

void import_average_pool(Call& call) {
  if (mean_of_squares(call)) return;
  const Attributes& node = call.attributes();
  bool counted = node.integer("count_include_pad", 0) != 0;
  // Zeros that a Pad has put there count, those of the pool's own pads only if it says so.
  const Extents own = node.integers("pads").value_or(Extents{});
  const bool pads = std::any_of(own.begin(), own.end(), [](std::int64_t pad) { return pad != 0; });
  const std::optional<Padding> padding = call.padded(0).padding;
  const bool absorbs = padding && padding->number == 0 && (!pads || counted) && takes_over_pads(node);
  const Running& x = absorbs ? call.padded(0) : call.running(0);
  counted = counted || absorbs;
  Pool pool = pool_of(call, x);
  if (in_space(pool)) return append_space_pool(call, pool, PoolOf::mean, counted, x.type);
  bool uneven = false;  // counts cells beyond equal pads
  for (Windows::Along& a : pool.windows.along) {
    const std::int64_t reach = (a.count - 1) * a.stride - a.begin + a.span();  // of the last window
    uneven = uneven || (counted && a.begin != a.end && reach > a.input + std::min(a.begin, a.end));
    if (!counted) shorten_single(a);
  }
  std::optional<Rounding> rounding = equal_pads(pool.windows);
  if (counted && (!rounding || uneven)) {
    Windows padded = pool.windows;  // as an op Pad would leave them
    for (Windows::Along& a : padded.along) {
      a.input += a.begin + a.end;
      a.begin = a.end = 0;
    }
    rounding = equal_pads(padded);
    if (rounding) append_pad(call, pool, 0, true);
  }
  if (!rounding) return append_space_pool(call, pool, PoolOf::mean, counted, x.type);
  const Value y = call.append(AveragePool{.window = pool.windows.kernel(),
                                          .stride = pool.windows.stride(),
                                          .pad = pool.windows.begin(),
                                          .rounding = *rounding,
                                          .count_padding = counted},
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

namespace {

/// One window over all pixels, and slices: the result has axes of extent 1 for them, or none.
void global_pool(Call& call, PoolOf of, bool keeps_axes) {
  const Running& x = call.running(0);
  const std::size_t rank = x.view.size();
  const Shape shape = x.value.shape();
  Op op = GlobalAveragePool{};
  if (of == PoolOf::maximum) op = MaxPool{.window = {shape.h, shape.w}, .stride = {shape.h, shape.w}};
  if (rank == 5) {
    const int slices = narrow(call, extent(x.view[2]), 1, "number of slices");
    const auto all = [](int size) { return PoolAxis{.size = size, .stride = size}; };
    op = SpacePool{.of = of, .depth = all(slices), .rows = all(shape.h), .columns = all(shape.w), .slices = slices};
  }
  const Value y = call.append(op, {as_volume(x)}, call.name());
  call.result({.value = y, .view = of_channels(y.shape(), keeps_axes ? rank : 2), .type = x.type});
}

}  // namespace

void import_global_average_pool(Call& call) { global_pool(call, PoolOf::mean, true); }
void import_global_max_pool(Call& call) { global_pool(call, PoolOf::maximum, true); }

/// ReduceMean over all pixels.
void import_reduce_mean(Call& call) {
  const Attributes& node = call.attributes();
  const Running& x = call.running(0);
  std::optional<Extents> axes = node.integers("axes");
  if (!axes && call.has(1)) axes = node.list(call.constant(1, "its axes"));
  std::vector<char> over(x.view.size(), 0);
  for (const std::int64_t axis : axes.value_or(Extents{})) over[axis_of(node, axis, over.size())] = 1;
  bool pixels = over.size() > 2 && !over[0] && !over[1];
  for (std::size_t i = 2; i < over.size(); ++i) pixels = pixels && over[i];
  if (!pixels)
    throw Refusal{"it takes the mean over other axes than all rows and columns: it would need an op ReduceMean"};
  global_pool(call, PoolOf::mean, node.integer("keepdims", 1) != 0);
}

}  // namespace lamina::onnx
