// LRN: the operator, and the nodes that PyTorch's exporters write instead: x / (scale * mean + shift) ^ exponent, where
// mean is an AveragePool of the squares along the channels after a Pad of zeros there.

#include "windows.h"

namespace lamina::onnx {
namespace {

[[noreturn]] void refuse() {
  throw Refusal{"it works on the square of a value in other ways than nn.LocalResponseNorm does"};
}

bool along_channels(const DynamicValue& x, std::size_t axis) {
  const Shape shape = x.value.shape();
  return x.view[axis] == onnx::axis(shape.c, shape.plane()) && shape.c > 1;
}

/// Whether only x * x has been read so far, which need not be part of an LRN.
bool is_product_alone(const Squares& s) { return s.size == 0 && s.before + s.after == 0; }

}  // namespace

void import_lrn(NodeContext& context) {
  const DynamicValue& given = context.dynamic(0);
  const DynamicValue x = in_order(context, given, usual_labels(given.view.size()), context.name() + ".x");
  const int size = narrow(context, context.integer("size", 0), 1, "size");
  if (size % 2 == 0)
    throw Refusal{"its size " + std::to_string(size) + " is even: use nn.LocalResponseNorm of an odd size"};
  context.result_of(Lrn{.size = size,
                        .alpha = context.number("alpha", 0.0001),
                        .beta = context.number("beta", 0.75),
                        .k = context.number("bias", 1)},
                    x);
}

bool squared(NodeContext& context) {
  if (context.node().op_type != "Mul" || context.inputs() != 2) return false;
  const DynamicValue &a = context.pending(0), &b = context.pending(1);
  if (a.is_pending() || b.is_pending() || a.value.id() != b.value.id() || a.view != b.view) return false;
  DynamicValue y = a;
  y.squares = Squares{.name = context.name()};
  context.result(std::move(y));
  return true;
}

bool divided_by_squares(NodeContext& context) {
  if (context.node().op_type != "Div" || context.inputs() != 2) return false;
  const DynamicValue &x = context.pending(0), &by = context.pending(1);
  if (!by.squares || is_product_alone(*by.squares)) return false;
  const Squares& s = *by.squares;
  if (x.is_pending() || x.value.id() != by.value.id() || x.view != by.view || s.size == 0 || !s.exponent ||
      s.shift <= 0 || s.scale < 0 || *s.exponent < 0)
    refuse();
  context.result_of(Lrn{.size = s.size, .alpha = s.scale, .beta = *s.exponent, .k = s.shift}, x);
  return true;
}

bool squares_and_number(NodeContext& context, std::size_t at) {
  const std::size_t operand = 1 - at;
  if (context.is_constant(operand) || !context.pending(operand).squares) return false;
  DynamicValue y = context.pending(operand);
  Squares& s = *y.squares;
  if (is_product_alone(s)) return false;
  const Constant& constant = context.constant(at, "its operand");
  const std::string_view op = context.node().op_type;
  if (constant.count() != 1 || constant.extents.size() > y.view.size() || s.exponent || s.size == 0) refuse();
  const double number = as_written(static_cast<float>(constant.at(0)));
  if (op == "Mul") {
    s.scale *= number;
    s.shift *= number;
  } else if (op == "Add") {
    s.shift += number;
  } else if (op == "Pow" && at == 1) {
    s.exponent = number;
  } else {
    refuse();
  }
  context.result(std::move(y));
  return true;
}

bool padded_squares(NodeContext& context, const Extents& before, const Extents& after, double number) {
  if (!context.pending(0).squares) return false;
  DynamicValue y = context.pending(0);
  Squares& s = *y.squares;
  for (std::size_t i = 0; i < before.size() && is_product_alone(s); ++i) {
    if ((before[i] != 0 || after[i] != 0) && !along_channels(y, i)) return false;
  }
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] == 0 && after[i] == 0) continue;
    if (!along_channels(y, i) || number != 0 || s.before + s.after + s.size > 0) refuse();
    s.before = narrow(context, before[i], 0, "pad");
    s.after = narrow(context, after[i], 0, "pad");
  }
  context.result(std::move(y));
  return true;
}

bool mean_of_squares(NodeContext& context) {
  if (!context.pending(0).squares) return false;
  DynamicValue y = context.pending(0);
  Squares& s = *y.squares;
  if (is_product_alone(s)) return false;
  const auto all = [&](const char* name, std::int64_t number) {
    return all_are(context.integers(name).value_or(Extents{}), number);
  };
  const Extents kernel = context.integers("kernel_shape").value_or(Extents{});
  const std::string automatic = auto_pad_of(context);
  if (kernel.size() + 2 != y.view.size() || s.size != 0 || s.scale != 1 || s.shift != 0 || !all("strides", 1) ||
      !all("pads", 0) || !all("dilations", 1) || (!automatic.empty() && automatic != "VALID"))
    refuse();
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    if (kernel[i] == 1) continue;
    if (!along_channels(y, i + 2) || s.size != 0) refuse();
    s.size = narrow(context, kernel[i], 1, "kernel");
  }
  if (s.before != s.size / 2 || s.after != (s.size - 1) / 2) refuse();  // as many channels as before, and centred
  context.result(std::move(y));
  return true;
}

Operators lrn_operators() { return {{{"LRN"}, import_lrn}}; }

}  // namespace lamina::onnx
