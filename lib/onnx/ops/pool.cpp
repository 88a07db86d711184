// Pools. Windows begin at the pad of the front: the pad of the end only says how many there are.

#include <algorithm>
#include <array>
#include <limits>

#include "windows.h"

namespace lamina::onnx {
namespace {

struct Pool {
  Windows windows;
  Value image;
  View view;
};

Pool pool_of(const NodeContext& context, const DynamicValue& x) {
  const Attributes& node = context.attributes();
  if (x.view.size() < 3) node.invalid("has an input of " + text(extents(x.view)));
  demand_planes(x.view.size());
  Pool pool{.windows = windows_of(context, x, std::nullopt), .image = as_image(x), .view = {}};
  Extents result = extents(x.view);
  for (std::size_t i = 2; i < result.size(); ++i) {
    if (pool.windows[i - 2].dilation != 1) throw Refusal{"dilations of a pool are not supported: use dilation=1"};
    result[i] = pool.windows[i - 2].count;
  }
  pool.view = layout_of(result, usual_labels(result.size())).view;
  return pool;
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
void append_pad(NodeContext& context, Pool& pool, double number, bool counted) {
  std::array<int, 2> before{}, after{};
  for (std::size_t i = 0; i < 2; ++i) {
    Windows::Along& a = pool.windows[i];
    const std::int64_t reach = (a.count - 1) * a.stride + a.span() - a.begin - a.input;
    before[i] = narrow(context, a.begin, 0, "pad");
    after[i] = narrow(context, counted ? a.end : std::max<std::int64_t>(reach, 0), 0, "pad");
    a.input += before[i] + after[i];
    a.begin = a.end = 0;
  }
  pool.image = context.append(Pad{.before = {before[0], before[1]}, .after = {after[0], after[1]}, .value = number},
                              {pool.image}, context.name() + ".pad");
}

/// Whether a Pad before the pool can be its own pads. Rounded up, windows that start in a pad are not there, but in the
/// result of a Pad they are.
bool takes_over_pads(const Attributes& node) { return !pads_itself(node) && node.integer("ceil_mode", 0) == 0; }

/// A single window that reaches beyond the image has the mean of one that ends with it.
void shorten_single(Windows::Along& a) {
  if (a.count != 1 || a.begin >= a.kernel) return;
  a.kernel = std::min(a.kernel - a.begin, a.input);
  a.stride = a.input;
  a.begin = a.end = 0;
}

}  // namespace

void import_max_pool(NodeContext& context) {
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  context.only_output("use return_indices=False");
  const std::optional<Padding> padding = context.padded(0).padding;
  const bool own = padding && padding->number == lowest && takes_over_pads(context.attributes());
  const DynamicValue& x = own ? context.padded(0) : context.dynamic(0);
  Pool pool = pool_of(context, x);
  std::optional<Rounding> rounding = equal_pads(pool.windows);
  if (!rounding) {
    append_pad(context, pool, lowest, false);
    rounding = equal_pads(pool.windows);  // always found: without pads, rounding down gives these windows
  }
  const Value y = context.append(MaxPool{.window = pool.windows.kernel(),
                                         .stride = pool.windows.stride(),
                                         .pad = pool.windows.begin(),
                                         .rounding = *rounding},
                                 {pool.image}, context.name());
  context.result({.value = y, .view = pool.view, .type = x.type});
}

void import_average_pool(NodeContext& context) {
  if (mean_of_squares(context)) return;
  const Attributes& node = context.attributes();
  bool counted = node.integer("count_include_pad", 0) != 0;
  // Zeros that a Pad has put there count, those of the pool's own pads only if it says so.
  const Extents own = node.integers("pads").value_or(Extents{});
  const bool pads = std::any_of(own.begin(), own.end(), [](std::int64_t pad) { return pad != 0; });
  const std::optional<Padding> padding = context.padded(0).padding;
  const bool fuses = padding && padding->number == 0 && (!pads || counted) && takes_over_pads(node);
  const DynamicValue& x = fuses ? context.padded(0) : context.dynamic(0);
  counted = counted || fuses;
  Pool pool = pool_of(context, x);
  bool uneven = false;  // counts cells beyond equal pads
  for (Windows::Along& a : pool.windows.along) {
    const std::int64_t reach = (a.count - 1) * a.stride - a.begin + a.span();  // the end of the last window
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
    if (rounding) append_pad(context, pool, 0, true);
  }
  if (!rounding) {
    throw Refusal{
        "pads that do not count, and differ at the two ends or are above half of a window, are not supported: use "
        "count_include_pad=True, or pad both ends alike"};
  }
  const Value y = context.append(AveragePool{.window = pool.windows.kernel(),
                                             .stride = pool.windows.stride(),
                                             .pad = pool.windows.begin(),
                                             .rounding = *rounding,
                                             .count_padding = counted},
                                 {pool.image}, context.name());
  context.result({.value = y, .view = pool.view, .type = x.type});
}

namespace {

/// One window over all pixels, in whatever order: the result has axes of extent 1 for them, or none.
void global_pool(NodeContext& context, bool maximum, bool keeps_axes) {
  const DynamicValue& x = context.dynamic(0);
  const std::size_t rank = x.view.size();
  const Shape shape = x.value.shape();
  if (rank < 3 || x.view[0] != axis(shape.n, shape.image()) || x.view[1] != axis(shape.c, shape.plane())) {
    throw Refusal{"its input of " + text(extents(x.view)) + " is kept as " + to_string(shape) +
                      ", in another order: " + keep_order,
                  rank > 2};
  }
  Op op = GlobalAveragePool{};
  if (maximum) op = MaxPool{.window = {shape.h, shape.w}, .stride = {shape.h, shape.w}};
  const Value y = context.append(op, {x.value}, context.name());
  Extents result = {shape.n, shape.c};
  result.resize(keeps_axes ? rank : 2, 1);
  context.result({.value = y, .view = layout_of(result, usual_labels(result.size())).view, .type = x.type});
}

}  // namespace

void import_global_average_pool(NodeContext& context) { global_pool(context, false, true); }
void import_global_max_pool(NodeContext& context) { global_pool(context, true, true); }

/// ReduceMean and ReduceMax over all pixels.
void import_reduce(NodeContext& context) {
  if (context.is_constant(0)) return fold_or_refuse(context);
  const Attributes& node = context.attributes();
  const DynamicValue& x = context.dynamic(0);
  std::optional<Extents> axes = node.integers("axes");
  if (!axes && context.has(1)) axes = node.list(context.constant(1, "its axes"));
  std::vector<char> over(x.view.size(), 0);
  for (const std::int64_t axis : axes.value_or(Extents{})) over[axis_of(node, axis, over.size())] = 1;
  bool pixels = over.size() > 2 && !over[0] && !over[1];
  for (std::size_t i = 2; i < over.size(); ++i) pixels = pixels && over[i];
  const bool maximum = node.node().op_type == "ReduceMax";
  if (!pixels)
    throw Refusal{std::string("it takes the ") + (maximum ? "maximum" : "mean") +
                  " over other axes than all rows and columns: only x." + (maximum ? "amax" : "mean") +
                  "((2, 3)) of an image is read"};
  global_pool(context, maximum, node.integer("keepdims", 1) != 0);
}

}  // namespace lamina::onnx
