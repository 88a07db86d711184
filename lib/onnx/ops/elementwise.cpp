// Operators on single elements, and sums.

#include <cmath>
#include <limits>

#include "fold_or_refuse.h"
#include "lrn.h"
#include "operators.h"

namespace lamina::onnx {
namespace {

void unary(Call& call, const Op& op) {
  const Running& x = call.running(0);
  const Value y = call.append(op, {x.value}, call.name());
  call.result({.value = y, .view = x.view, .type = x.type});
}

/// The addition of values that are all computed.
void add_all(Call& call) {
  std::vector<Value> operands;
  const Running& first = call.running(0);
  for (std::size_t i = 0; i < call.inputs(); ++i) {
    const Running& x = call.running(i);
    if (extents(x.view) != extents(first.view)) {
      throw Refusal{"it adds " + text(extents(first.view)) + " and " + text(extents(x.view)) +
                    ": it would need an op that repeats values"};
    }
    if (x.view != first.view || x.value.shape() != first.value.shape()) {
      throw Refusal{"its operands are kept in different orders: it would need an op that moves numbers"};
    }
    operands.push_back(x.value);
  }
  const Value y = operands.size() == 1 ? operands.front() : call.append(Add{}, operands, call.name());
  call.result({.value = y, .view = first.view, .type = first.type});
}

/// Of `channels` channels, from a constant that is operand `at`.
Call::Affine affine_of(const Call& call, std::int64_t channels, std::size_t at, const Constant& constant) {
  const std::string_view op = call.attributes().node().op_type;
  const auto count = static_cast<std::size_t>(channels);
  call.charge(2 * channels);
  Call::Affine affine{.scale = std::vector<double>(count, 1), .shift = std::vector<double>(count, 0)};
  for (std::size_t c = 0; c < count; ++c) {
    const double number = constant.at(constant.count() == 1 ? 0 : static_cast<std::int64_t>(c));
    if (op == "Add") affine.shift[c] = number;
    if (op == "Sub") affine.shift[c] = at == 0 ? number : -number;
    if (op == "Sub" && at == 0) affine.scale[c] = -1;
    if (op == "Mul") affine.scale[c] = number;
    if (op == "Div") affine.scale[c] = 1 / number;
  }
  return affine;
}

void one_number(Call& call, const Running& x, std::size_t at, const Constant& constant) {
  append_affine(call, x, affine_of(call, x.value.shape().c, at, constant), constant.type);
}

}  // namespace

void import_relu(Call& call) { unary(call, Relu{}); }
void import_sigmoid(Call& call) { unary(call, Sigmoid{}); }
void import_tanh(Call& call) { unary(call, Tanh{}); }

void import_clip(Call& call) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Attributes& node = call.attributes();
  const auto limit = [&](const char* name, std::size_t input, double otherwise) {
    if (call.opset() < 11) return node.number(name, otherwise);
    if (!call.has(input)) return otherwise;
    const Constant& number = call.constant(input, std::string("its limit ") + name);
    if (number.count() != 1) node.invalid("has " + text(number.extents) + " as its limit " + name);
    return number.at(0);
  };
  const double low = limit("min", 1, -infinity), high = limit("max", 2, infinity);
  constexpr double none = std::numeric_limits<float>::max();  // how exporters write that there is no limit
  if (low == 0 && high >= none) {
    unary(call, Relu{});
  } else if (low <= -none && high >= none) {
    call.result(call.padded(0));
  } else {
    throw Refusal{"it limits to " + std::to_string(low) + " and " + std::to_string(high) +
                  ": it would need an op Clip"};
  }
}

void import_add(Call& call) {
  if (call.inputs() == 2 && (call.is_constant(0) || call.is_constant(1))) {
    import_affine(call);
  } else {
    add_all(call);
  }
}

void import_sum(Call& call) { add_all(call); }

/// A constant beside a value: by channel, or one number.
void import_affine(Call& call) {
  const Attributes& node = call.attributes();
  const std::string_view op = node.node().op_type;
  if (call.is_constant(0) && call.is_constant(1)) {
    fold_or_refuse(call);
    return;
  }
  const std::size_t at = call.is_constant(1) ? 1 : 0;
  if (!call.is_constant(at) && (squared(call) || divided_by_squares(call))) return;
  if (call.is_constant(at) && squares_and_number(call, at)) return;
  if (!call.is_constant(at)) throw Refusal{"both operands are computed: it would need an op " + std::string(op)};
  const Running& x = call.running(1 - at);
  const Constant& constant = call.constant(at, "its operand");
  if (at == 0 && op == "Div") throw Refusal{"it divides a constant by a value: it would need an op Div"};
  const Extents own = extents(x.view);
  if (constant.count() == 1 && constant.extents.size() <= own.size()) return one_number(call, x, at, constant);
  const std::size_t channels = channel_axis(x);
  bool fits = constant.extents.size() <= own.size() && constant.count() > 0;
  for (std::size_t i = 0; fits && i < constant.extents.size(); ++i) {
    if (constant.extents[i] == 1) continue;
    const std::size_t of = i + own.size() - constant.extents.size();
    fits = of == channels && constant.extents[i] == own[channels];
  }
  if (!fits) {
    throw Refusal{"its operand of " + text(constant.extents) + " is not one number, or one for each channel, of " +
                  text(own) + ": it would need an op " + std::string(op) + " that repeats values"};
  }
  Call::Affine affine = affine_of(call, own[channels], at, constant);
  const Call::Affine more = call.absorb_affine(own, channels, false);
  for (std::size_t c = 0; c < more.scale.size(); ++c) {
    affine.scale[c] *= more.scale[c];
    affine.shift[c] = affine.shift[c] * more.scale[c] + more.shift[c];
  }
  append_affine(call, x, std::move(affine), constant.type);
}

void append_affine(Call& call, const Running& x, Call::Affine affine, ElementType type) {
  const int channels = x.value.shape().c;
  const Value y = call.append(Conv{.channels = channels, .kernel = 1, .groups = channels}, {x.value}, call.name());
  call.weights(y, "weight", {channels, 1, 1, 1}, std::move(affine.scale), type);
  call.weights(y, "bias", {channels}, std::move(affine.shift), type);
  call.result({.value = y, .view = x.view, .type = x.type});
}

void import_pow(Call& call) {
  if (call.is_constant(0)) return fold_or_refuse(call);
  if (!call.is_constant(1) || !squares_and_number(call, 1)) throw Refusal{"it would need an op Pow"};
}

void import_cast(Call& call) {
  if (call.is_constant(0)) {
    fold_or_refuse(call);
    return;
  }
  Running x = call.padded(0);
  const auto to = static_cast<ElementType>(call.attributes().integer("to", 0));
  const auto is_whole = [](ElementType type) { return type == ElementType::i32 || type == ElementType::i64; };
  if ((is_floating(to) && is_floating(x.type)) || (is_whole(to) && is_whole(x.type)) || to == x.type) {
    x.type = to;
    call.result(x);
  } else {
    throw Refusal{"it converts " + text(x.type) + " to " + text(to) + ": it would need an op that does"};
  }
}

}  // namespace lamina::onnx
