// Resize and Upsample. The op is chosen so that it reads the same cells, with the same weights, as the node.

#include <algorithm>
#include <cmath>

#include "lib/core/units/resize_axis.h"
#include "windows.h"

namespace lamina::onnx {
namespace {

constexpr double nearly = 1e-6;  // tolerance in cells, for factors and positions rounded to f32

/// An axis of the image: its extents in x and y, and the node's factor. The step is 0 if the factor is to / from.
struct Along {
  int from = 1, to = 1;
  double factor = 1;

  double step() const { return std::abs(from * factor - to) <= nearly * to ? 0 : 1 / factor; }
};

/// The attributes that say where the elements of a result lie.
struct Rule {
  std::string mode, place, rounding;
};

[[noreturn]] void refuse_place(const Rule& rule) {
  throw Refusal{"its elements lie where no op has them (" + rule.place.substr(0, 30) +
                (rule.mode == "nearest" ? ", " + rule.rounding : "") +
                "): use nearest, nearest-exact or bilinear as PyTorch has them"};
}

Rule rule_of(NodeContext& context) {
  const bool old = context.node().op_type == "Upsample" || context.opset() < 11;
  Rule rule{.mode = context.text("mode", "nearest"),
            .place = context.text("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel"),
            .rounding = context.text("nearest_mode", old ? "floor" : "round_prefer_floor")};
  if (rule.mode != "nearest" && rule.mode != "linear")
    throw Refusal{"its mode is " + rule.mode.substr(0, 20) + ": use nearest or bilinear"};
  if (!is_any_of(rule.place, "half_pixel pytorch_half_pixel align_corners asymmetric")) refuse_place(rule);
  if (!is_any_of(rule.rounding, "floor ceil round_prefer_floor round_prefer_ceil"))
    context.invalid("has the nearest_mode " + rule.rounding.substr(0, 20));
  if (context.integer("antialias", 0) != 0) throw Refusal{"it averages against aliasing: use antialias=False"};
  if (context.text("keep_aspect_ratio_policy", "stretch") != "stretch")
    throw Refusal{"its extents follow from the aspect ratio: give them as they are"};
  return rule;
}

/// The position of element i in x. For nearest it is rounded as the node says, so that its floor is the cell.
double position_of(const Rule& rule, const Along& a, int i) {
  const double step = a.step() > 0 ? a.step() : static_cast<double>(a.from) / a.to;
  double at = i * step;
  if (rule.place == "half_pixel" || (rule.place == "pytorch_half_pixel" && a.to > 1)) at += step / 2 - 0.5;
  if (rule.place == "align_corners") at = a.to > 1 ? i * (a.from - 1.0) / (a.to - 1) : 0;
  if (rule.mode == "nearest" && rule.rounding == "ceil") at = std::ceil(at - nearly);
  if (rule.mode == "nearest" && rule.rounding == "round_prefer_floor") at = std::ceil(at - 0.5 - nearly);
  if (rule.mode == "nearest" && rule.rounding == "round_prefer_ceil") at = std::floor(at + 0.5 + nearly);
  return std::min(std::max(at + nearly, 0.0), a.from - 1.0);
}

/// Whether the elements of the op lie where the node's elements lie.
bool agrees(const Rule& rule, const Along& a, ResizeBy by) {
  const ResizeAxis axis = resize_axis(by, a.from, a.to, by == ResizeBy::linear_aligned ? 0 : a.step());
  for (int i = 0; i < a.to; ++i) {
    const double its = position_of(rule, a, i), ours = axis.position(i);
    if (axis.linear ? std::abs(its - ours) > 2 * nearly : std::floor(its) != std::floor(ours)) return false;
  }
  return true;
}

ResizeBy kind_of(const Rule& rule, const std::array<Along, 2>& axes) {
  for (const ResizeBy by : {ResizeBy::nearest, ResizeBy::nearest_exact, ResizeBy::linear, ResizeBy::linear_aligned})
    if (is_linear(by) == (rule.mode == "linear") && agrees(rule, axes[0], by) && agrees(rule, axes[1], by)) return by;
  refuse_place(rule);
}

/// The extents of the result, and the factor of each axis.
struct Target {
  Extents extents;
  std::vector<double> factors;
};

Target target_of(NodeContext& context, const DynamicValue& x) {
  const bool upsamples = context.node().op_type == "Upsample";
  const std::size_t scales = upsamples || context.opset() < 11 ? 1 : 2, sizes = 3;
  Target target{.extents = extents(x.view), .factors = std::vector<double>(x.view.size(), 1)};
  std::vector<std::size_t> axes;
  for (const std::int64_t axis : context.integers("axes").value_or(Extents{}))
    axes.push_back(axis_of(context, axis, x.view.size()));
  for (std::size_t i = 0; i < x.view.size() && !context.has("axes"); ++i) axes.push_back(i);
  const bool by_sizes = scales == 2 && context.has(sizes);
  Constant its{.extents = {}, .values = {}};
  if (by_sizes || context.has(scales)) {
    its = context.constant(by_sizes ? sizes : scales, by_sizes ? "its sizes" : "its scales");
  } else {
    for (const double factor : context.value("scales").numbers)
      its.values.push_back(factor);  // Upsample before opset 9
    its.extents = {static_cast<std::int64_t>(its.values.size())};
  }
  if (its.count() != static_cast<std::int64_t>(axes.size()))
    context.invalid("has " + std::to_string(its.count()) + " factors or sizes for " + std::to_string(axes.size()) +
                    " axes");
  Extents whole = by_sizes ? context.list(its) : Extents{};
  // The file's batch may be among the sizes. Other extents differ from those of x.
  if (by_sizes && !its.of_extents && !context.has("axes")) whole[0] = context.with_batch(x, {whole[0], -1})[0];
  for (std::size_t i = 0; i < axes.size(); ++i) {
    std::int64_t& extent = target.extents[axes[i]];
    double& factor = target.factors[axes[i]];
    const auto from = static_cast<double>(extent);
    factor = by_sizes ? static_cast<double>(whole[i]) / from : its.at(static_cast<std::int64_t>(i));
    if (!(factor > 0 && factor * from < 0x1p31)) context.invalid("has a factor of " + std::to_string(factor));
    extent = by_sizes ? whole[i] : to_integer(std::floor(factor * from * (1 + nearly)));
  }
  return target;
}

void import_resize(NodeContext& context) {
  const DynamicValue x = context.dynamic(0);
  const std::size_t rank = x.view.size();
  if (rank < 3) throw Refusal{"it has no rows: images and sequences alone are resized"};
  demand_planes(rank);
  const Rule rule = rule_of(context);
  const Extents own = extents(x.view);
  const Target target = target_of(context, x);
  if (target.extents[0] != own[0] || target.extents[1] != own[1])
    throw Refusal{"it resizes other axes than rows and columns: only these are resized"};
  if (target.extents == own) return context.result(x);
  std::array<Along, 2> axes;
  for (std::size_t i = 2; i < rank; ++i) {
    axes[i - 2] = {.from = narrow(context, own[i], 1, "extent"),
                   .to = narrow(context, target.extents[i], 1, "extent"),
                   .factor = target.factors[i]};
    context.consume_budget(target.extents[i]);
  }
  const ResizeBy by = kind_of(rule, axes);
  Resize op{.to = {axes[0].to, axes[1].to}, .by = by};
  if (by != ResizeBy::linear_aligned) op.step_h = axes[0].step(), op.step_w = axes[1].step();
  const Value y = context.append(op, {as_image(context, x)}, context.name());
  context.result({.value = y, .view = layout_of(target.extents, usual_labels(rank)).view, .type = x.type});
}

}  // namespace

Operators resize_operators() { return {{{"Resize", "Upsample"}, import_resize}}; }

}  // namespace lamina::onnx
