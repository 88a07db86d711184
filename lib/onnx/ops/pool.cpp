// Pools and reductions. The front pad determines where windows begin, the end pad only how many there are.

#include <algorithm>
#include <array>
#include <limits>

#include "windows.h"

namespace lamina::onnx {

DynamicValue reduce(NodeContext& context, const WholeAxes& its, const std::vector<char>& over, ReduceBy by,
                    const std::string& name, bool keeps_axes) {
  const auto& [x, channels, rows, columns] = its;
  const Shape s = x.value.shape();
  const bool of_planes = !channels && (rows || s.h == 1) && (columns || s.w == 1);
  const Op op = by == ReduceBy::mean && of_planes ? Op(GlobalAveragePool{}) : Op(Reduce{by, channels, rows, columns});
  const Value y = channels || rows || columns ? context.append_once(op, x.value, name) : x.value;
  return {.value = y, .view = reduced(x.view, over, keeps_axes, s, y.shape()), .type = x.type};
}

namespace {

struct Pool {
  Windows windows;
  Value image;
  View view;
};

Pool pool_of(NodeContext& context, const DynamicValue& x) {
  if (x.view.size() < 3) context.invalid("has an input of " + text(extents(x.view)));
  demand_planes(x.view.size());
  Pool pool{.windows = windows_of(context, x, std::nullopt), .image = as_image(context, x), .view = {}};
  Extents result = extents(x.view);
  for (std::size_t i = 2; i < result.size(); ++i) {
    if (pool.windows[i - 2].dilation != 1) throw Refusal{"dilations of a pool are not supported: use dilation=1"};
    result[i] = pool.windows[i - 2].count;
  }
  pool.view = layout_of(result, usual_labels(result.size())).view;
  return pool;
}

/// A rounding that gives the right number of windows with the front pad at both ends. Nothing if there is none, or if a
/// pad is too large for the ops.
std::optional<Rounding> equal_pads(const Windows& windows) {
  const auto small = [](const Windows::Along& a) { return 2 * a.begin <= a.kernel; };
  if (!std::all_of(windows.along.begin(), windows.along.end(), small)) return std::nullopt;
  for (const Rounding rounding : {windows.rounding, Rounding::down, Rounding::up})
    if (have_equal_pads(windows, rounding)) return rounding;
  return std::nullopt;
}

/// Appends a Pad in place of the pool's pads: all of them if they are `counted`, else as far as the windows reach.
void pad_image(NodeContext& context, Pool& pool, double number, bool counted) {
  std::array<std::int64_t, 2> before{}, after{};
  for (std::size_t i = 0; i < 2; ++i) {
    Windows::Along& a = pool.windows[i];
    const std::int64_t reach = (a.count - 1) * a.stride + a.span() - a.begin - a.input;
    if (!counted) a.end = std::max<std::int64_t>(reach, 0);
    before[i] = a.begin, after[i] = a.end;
  }
  pool.image = append_pad(context, pool.image, pool.windows, before, after, number);
}

/// Whether a Pad of this number before the pool can become pads of the pool. It cannot if the count is rounded up:
/// windows that start in a pool's end pad are left out, windows that start in the cells of a Pad are kept.
bool takes_over_pads(const NodeContext& context, double number) {
  const std::optional<Padding>& padding = context.padded(0).padding;
  return padding && padding->op.value == number && auto_pad_of(context).empty() && context.integer("ceil_mode", 0) == 0;
}

/// Appends a MaxPool or an AveragePool, or nothing if its result is its input.
template <class Kind>
void append_pool(NodeContext& context, const Pool& pool, Kind op, Rounding rounding, ElementType type) {
  op.window = pool.windows.kernel();
  op.stride = pool.windows.stride();
  op.pad = pool.windows.begin();
  op.rounding = rounding;
  const bool gives_input = std::ranges::all_of(pool.windows.along, [](const Windows::Along& a) {
    return a.kernel == 1 && a.stride == 1 && a.begin == 0 && a.count == a.input;
  });
  const Value y = gives_input ? pool.image : context.append_once(op, pool.image, context.name());
  context.result({.value = y, .view = pool.view, .type = type});
}

/// Shortens a single window to the image: cells beyond it do not count in the mean.
void shorten_single(Windows::Along& a) {
  if (a.count != 1 || a.begin >= a.kernel) return;
  a.kernel = std::min(a.kernel - a.begin, a.input);
  a.stride = a.input;
  a.begin = a.end = 0;
}

void import_max_pool(NodeContext& context) {
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  context.only_output("use return_indices=False");
  const DynamicValue& x = takes_over_pads(context, lowest) ? context.padded(0) : context.dynamic(0);
  Pool pool = pool_of(context, x);
  std::optional<Rounding> rounding = equal_pads(pool.windows);
  if (!rounding) {
    pad_image(context, pool, lowest, false);
    rounding = equal_pads(pool.windows);  // it exists: without pads, rounding down gives these windows
  }
  append_pool(context, pool, MaxPool{.window = 1, .stride = 1}, *rounding, x.type);
}

void import_average_pool(NodeContext& context) {
  if (mean_of_squares(context)) return;
  bool counted = context.integer("count_include_pad", 0) != 0;
  // The zeros of a Pad count in the mean. The pool's own pads count only with count_include_pad.
  const bool pads = !all_are(context.integers("pads").value_or(Extents{}), std::int64_t{0});
  const bool fuses = (!pads || counted) && takes_over_pads(context, 0);
  const DynamicValue& x = fuses ? context.padded(0) : context.dynamic(0);
  counted = counted || fuses;
  Pool pool = pool_of(context, x);
  bool uneven = false;  // whether cells beyond equal pads count
  for (Windows::Along& a : pool.windows.along) {
    const std::int64_t reach = (a.count - 1) * a.stride - a.begin + a.span();  // the end of the last window
    uneven = uneven || (counted && a.begin != a.end && reach > a.input + std::min(a.begin, a.end));
    if (!counted) shorten_single(a);
  }
  std::optional<Rounding> rounding = equal_pads(pool.windows);
  if (counted && (!rounding || uneven)) {
    pad_image(context, pool, 0, true);
    rounding = equal_pads(pool.windows);
  }
  if (!rounding) {
    throw Refusal{
        "pads that do not count, and differ at the two ends or are above half of a window, are not supported: use "
        "count_include_pad=True, or pad both ends alike"};
  }
  append_pool(context, pool, AveragePool{.window = 1, .stride = 1, .count_padding = counted}, *rounding, x.type);
}

void import_global_pool(NodeContext& context) {
  const ReduceBy by = context.node().op_type == "GlobalMaxPool" ? ReduceBy::max : ReduceBy::mean;
  const DynamicValue& x = context.dynamic(0);
  std::vector<char> over(x.view.size(), 1);
  if (over.size() < 3) context.invalid("has an input of " + text(context.extents(0)));
  over[0] = over[1] = 0;
  context.result(reduce(context, whole_axes(context, x, over, false), over, by, context.name(), true));
}

/// A mean, a sum or a maximum, or a sum of a function of each element. ReduceL2 is the root of such a sum.
void import_reduce(NodeContext& context) {
  const std::string_view op = context.node().op_type;
  const DynamicValue& x = context.dynamic(0);
  const std::vector<char> over = context.reduced_axes(x.view.size());
  WholeAxes its = whole_axes(context, x, over, false);
  const bool squares = op == "ReduceL2" || op == "ReduceSumSquare";
  if (squares || op == "ReduceL1")
    its.x.value = context.append(squares ? Pointwise{lamina::Function::pow, 2} : Pointwise{lamina::Function::abs},
                                 {its.x.value}, context.name() + (squares ? ".square" : ".abs"));
  const ReduceBy by = enumerator_of<ReduceBy>(op, reduction_names).value_or(ReduceBy::sum);
  const bool root = op == "ReduceL2";
  DynamicValue y =
      reduce(context, its, over, by, context.name() + (root ? ".sum" : ""), context.integer("keepdims", 1) != 0);
  if (root) y.value = context.append(Pointwise{lamina::Function::sqrt}, {y.value}, context.name());
  context.result(std::move(y));
}

}  // namespace

Operators pool_operators() {
  return {{{"AveragePool"}, import_average_pool},
          {{"GlobalAveragePool", "GlobalMaxPool"}, import_global_pool},
          {{"MaxPool"}, import_max_pool},
          {{"ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceSum", "ReduceSumSquare"}, import_reduce}};
}

}  // namespace lamina::onnx
