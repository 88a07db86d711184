// LRN: the operator, and the parts that PyTorch's exporters write instead. These are x / (scale * mean + shift) ^
// exponent, where the mean is an AveragePool of squares along the channels, after a Pad of zeros there.

#include <algorithm>

#include "lrn.h"
#include "windows.h"

namespace lamina::onnx {
namespace {

[[noreturn]] void refuse() {
  throw Refusal{"it works on a product of values that is not part of an LRN: it would need an op Mul"};
}

void append_lrn(Call& call, const Running& x, const Lrn& op) {
  const Value y = call.append(op, {x.value}, call.name());
  call.result({.value = y, .view = x.view, .type = x.type});
}

bool along_channels(const Running& x, std::size_t axis) {
  const Shape shape = x.value.shape();
  return x.view[axis] == onnx::axis(shape.c, shape.plane()) && shape.c > 1;
}

/// Only x * x has been read so far: it can still become a Multiply.
bool is_product_alone(const Squares& s) { return s.size == 0 && s.before + s.after == 0; }

}  // namespace

void import_lrn(Call& call) {
  const Attributes& node = call.attributes();
  const Running& x = call.running(0);
  as_image(x);
  const int size = narrow(call, node.integer("size", 0), 1, "size");
  if (size % 2 == 0) throw Refusal{"its size " + std::to_string(size) + " is even: ours extends further down, not up"};
  append_lrn(call, x,
             {.size = size,
              .alpha = node.number("alpha", 0.0001),
              .beta = node.number("beta", 0.75),
              .k = node.number("bias", 1)});
}

bool squared(Call& call) {
  if (call.attributes().node().op_type != "Mul" || call.inputs() != 2) return false;
  const Running &a = call.pending(0), &b = call.pending(1);
  if (a.squares || b.squares || a.padding || a.value.id() != b.value.id() || a.view != b.view) return false;
  Running y = a;
  y.squares = Squares{.name = call.name()};
  call.result(std::move(y));
  return true;
}

bool divided_by_squares(Call& call) {
  if (call.attributes().node().op_type != "Div" || call.inputs() != 2) return false;
  const Running &x = call.pending(0), &by = call.pending(1);
  if (!by.squares) return false;
  const Squares& s = *by.squares;
  if (x.squares || x.padding || x.value.id() != by.value.id() || x.view != by.view || s.size == 0 || !s.exponent ||
      s.shift <= 0 || s.scale < 0 || *s.exponent < 0) {
    refuse();
  }
  append_lrn(call, x, {.size = s.size, .alpha = s.scale, .beta = *s.exponent, .k = s.shift});
  return true;
}

bool squares_and_number(Call& call, std::size_t at) {
  const std::size_t operand = 1 - at;
  if (call.is_constant(operand) || !call.pending(operand).squares) return false;
  Running y = call.pending(operand);
  Squares& s = *y.squares;
  if (is_product_alone(s)) return false;
  const Constant& constant = call.constant(at, "its operand");
  const std::string_view op = call.attributes().node().op_type;
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
  call.result(std::move(y));
  return true;
}

bool padded_squares(Call& call, const Extents& before, const Extents& after, double number) {
  if (!call.pending(0).squares) return false;
  Running y = call.pending(0);
  Squares& s = *y.squares;
  for (std::size_t i = 0; i < before.size() && is_product_alone(s); ++i) {
    if ((before[i] != 0 || after[i] != 0) && !along_channels(y, i)) return false;
  }
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] == 0 && after[i] == 0) continue;
    if (!along_channels(y, i) || number != 0 || s.before + s.after + s.size > 0) refuse();
    s.before = narrow(call, before[i], 0, "pad");
    s.after = narrow(call, after[i], 0, "pad");
  }
  call.result(std::move(y));
  return true;
}

bool mean_of_squares(Call& call) {
  if (!call.pending(0).squares) return false;
  Running y = call.pending(0);
  Squares& s = *y.squares;
  if (is_product_alone(s)) return false;
  const Attributes& node = call.attributes();
  const auto all = [&](const char* name, std::int64_t number) {
    const Extents list = node.integers(name).value_or(Extents{});
    return std::all_of(list.begin(), list.end(), [&](std::int64_t each) { return each == number; });
  };
  const Extents kernel = node.integers("kernel_shape").value_or(Extents{});
  const std::string automatic = node.text("auto_pad", "NOTSET");
  if (kernel.size() + 2 != y.view.size() || s.size != 0 || s.scale != 1 || s.shift != 0 || !all("strides", 1) ||
      !all("pads", 0) || !all("dilations", 1) || (automatic != "NOTSET" && automatic != "VALID")) {
    refuse();
  }
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    if (kernel[i] == 1) continue;
    if (!along_channels(y, i + 2) || s.size != 0) refuse();
    s.size = narrow(call, kernel[i], 1, "kernel");
  }
  if (s.before != s.size / 2 || s.after != (s.size - 1) / 2) refuse();  // as many channels as before, and centred
  call.result(std::move(y));
  return true;
}

}  // namespace lamina::onnx
