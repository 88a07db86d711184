// Gemm and MatMul with constant weights: fully connected ops, or 1x1 convolutions where rows are pixels. The order in
// which the input is flattened, whatever it is, goes into the columns of the weights.

#include "operators.h"

namespace lamina::onnx {
namespace {

/// A product x W + bias with W as rows of inputs and columns of outputs, by strides.
struct Product {
  const Constant& w;
  std::int64_t inputs, outputs;
  std::int64_t input_stride, output_stride;  ///< in w
  double scale = 1;
  bool absorbs = true;  ///< whether the result has these axes, so that an addition after it can be the bias
};

/// Where each element of an axis is in an image.
Extents offsets(const Axis& axis) {
  Extents all = {0};
  for (const OnnxFactor& factor : axis) {
    Extents next;
    next.reserve(all.size() * static_cast<std::size_t>(factor.extent));
    for (const std::int64_t base : all) {
      for (std::int64_t i = 0; i < factor.extent; ++i) next.push_back(base + i * factor.stride);
    }
    all = std::move(next);
  }
  return all;
}

bool within_image(const Axis& axis, const Shape& shape) {
  for (const OnnxFactor& factor : axis) {
    if (factor.extent * factor.stride > shape.image()) return false;
  }
  return true;
}

/// The weights as {outputs, inputs in the graph's order}.
std::vector<double> weights_of(const Call& call, const Product& product, const Extents& columns) {
  const std::optional<std::int64_t> count = element_count({product.inputs, product.outputs});
  call.charge(count.value());
  std::vector<double> weights(static_cast<std::size_t>(*count));
  for (std::int64_t k = 0; k < product.outputs; ++k) {
    for (std::int64_t c = 0; c < product.inputs; ++c) {
      weights[static_cast<std::size_t>(k * product.inputs + columns[static_cast<std::size_t>(c)])] =
          product.scale * product.w.at(c * product.input_stride + k * product.output_stride);
    }
  }
  return weights;
}

Running append_product(Call& call, const Running& x, const Product& product, std::vector<double> bias,
                       const std::string& named = {}) {
  const Shape shape = x.value.shape();
  const std::size_t last = x.view.size() - 1;
  Extents result = extents(x.view);
  if (result[last] != product.inputs) {
    call.attributes().invalid("multiplies " + text(result) + " by " + text(product.w.extents));
  }
  result[last] = product.outputs;
  const int outputs = narrow(call, product.outputs, 1, "number of outputs");
  call.charge(product.inputs);  // where each is in the image
  if (bias.empty() && product.absorbs) bias = call.absorb_affine(result, last, true).shift;

  const bool rows_are_images = x.view.size() == 2 && x.view[0] == axis(shape.n, shape.image()) &&
                               product.inputs == shape.image() && within_image(x.view[1], shape);
  if (rows_are_images) {
    const Value y = call.append(FullyConnected{.outputs = outputs, .bias = !bias.empty()}, {x.value},
                                named.empty() ? call.name() : named);
    call.weights(y, "weight", {product.outputs, product.inputs}, weights_of(call, product, offsets(x.view[1])),
                 product.w.type);
    if (!bias.empty()) call.weights(y, "bias", {product.outputs}, std::move(bias), product.w.type);
    return {.value = y, .view = place(result, "nc").view, .type = x.type};
  }
  if (x.view[last] != axis(shape.c, shape.plane()) || product.inputs != shape.c) {
    throw Refusal{
        "its input of " + text(extents(x.view)) + " is kept as " + to_string(shape) +
        ", whose channels are not its last axis: it would need an op that moves numbers (Reshape, Transpose)"};
  }
  Extents channels;
  for (std::int64_t c = 0; c < product.inputs; ++c) channels.push_back(c);
  const Value y = call.append(Conv{.channels = outputs, .kernel = 1, .bias = !bias.empty()}, {x.value},
                              named.empty() ? call.name() : named);
  call.weights(y, "weight", {product.outputs, product.inputs, 1, 1}, weights_of(call, product, channels),
               product.w.type);
  if (!bias.empty()) call.weights(y, "bias", {product.outputs}, std::move(bias), product.w.type);
  Running product_of_rows{.value = y, .view = with_channels(x.view, shape, y.shape()), .type = x.type};
  product_of_rows.view[last] = axis(product.outputs, y.shape().plane());  // a view does not show one channel
  return product_of_rows;
}

}  // namespace

void import_gemm(Call& call) {
  const Attributes& node = call.attributes();
  Running x = call.running(0);
  const Constant& w = call.constant(1, "its second factor");
  if (x.view.size() != 2 || w.extents.size() != 2 || w.count() == 0) {
    node.invalid("multiplies " + text(extents(x.view)) + " by " + text(w.extents));
  }
  if (node.integer("transA", 0) != 0) std::swap(x.view[0], x.view[1]);
  const bool transposed = node.integer("transB", 0) != 0;
  Product product{.w = w,
                  .inputs = w.extents[transposed ? 1 : 0],
                  .outputs = w.extents[transposed ? 0 : 1],
                  .input_stride = transposed ? 1 : w.extents[1],
                  .output_stride = transposed ? w.extents[1] : 1,
                  .scale = node.number("alpha", 1)};
  std::vector<double> bias;
  const bool adds_running = call.has(2) && !call.is_constant(2);
  if (call.has(2) && !adds_running) {
    const Constant& c = call.constant(2, "what it adds");
    const std::size_t rank = c.extents.size();
    if (c.count() != 1 && (c.count() != product.outputs || c.extents[rank - 1] != product.outputs)) {
      throw Refusal{"it adds " + text(c.extents) + " to rows of " + std::to_string(product.outputs) +
                    ": other than one number for each column would need an op"};
    }
    call.charge(product.outputs);
    for (std::int64_t k = 0; k < product.outputs; ++k) {
      bias.push_back(node.number("beta", 1) * c.at(c.count() == 1 ? 0 : k));
    }
  }
  if (!adds_running) return call.result(append_product(call, x, product, std::move(bias)));
  product.absorbs = false;
  if (node.number("beta", 1) != 1) throw Refusal{"it scales what it adds: it would need an op that does"};
  const Running& added = call.running(2);
  const std::string name = call.name();
  Running y = append_product(call, x, product, {}, name + ".product");
  if (added.view != y.view || added.value.shape() != y.value.shape()) {
    throw Refusal{"it adds " + text(extents(added.view)) + " to " + text(extents(y.view)) +
                  ": other than values in equal order would need an op"};
  }
  y.value = call.append(Add{}, {y.value, added.value}, name);
  call.result(std::move(y));
}

namespace {

/// A product by matrices that differ along axes before the last two: a 1x1 convolution, whose groups are the axes that
/// both have, and whose channels are also those that the weights alone have.
Running append_batched(Call& call, Running x, const Constant& w) {
  const std::size_t rank = std::max(x.view.size(), w.extents.size()), batches = rank - 2;
  x.view.insert(x.view.begin(), rank - x.view.size(), Axis{});
  Extents of_weights = w.extents;
  of_weights.insert(of_weights.begin(), rank - w.extents.size(), 1);
  const Extents own = extents(x.view);
  const std::int64_t inputs = of_weights[rank - 2], outputs = of_weights[rank - 1];
  const Shape before = x.value.shape();
  bool fits = own[rank - 1] == inputs && x.view[rank - 1] == axis(inputs, before.plane());
  std::int64_t groups = 1, repeats = 1, stride = inputs * before.plane();
  for (std::size_t i = batches; i-- > 0;) {
    if (of_weights[i] == 1) continue;
    if (own[i] == 1) {
      repeats *= of_weights[i];
    } else {
      fits = fits && own[i] == of_weights[i] && x.view[i] == axis(own[i], stride);
      stride *= own[i];
      groups *= own[i];
    }
  }
  if (!fits || groups * inputs != before.c) {
    throw Refusal{"it multiplies " + text(own) + ", kept as " + to_string(before) + ", by " + text(w.extents) +
                  ": it would need an op that does"};
  }
  // Channels of the result: groups, repeats, outputs.
  const std::optional<std::int64_t> channels = element_count({groups, repeats, outputs});
  const std::optional<std::int64_t> count = element_count({channels.value_or(-1), inputs});
  if (!count) call.attributes().invalid("multiplies by " + text(w.extents));
  call.charge(*count);
  std::vector<double> weights(static_cast<std::size_t>(*count));
  for (std::int64_t at = 0; at < w.count(); ++at) {
    std::int64_t rest = at / (inputs * outputs), group = 0, repeat = 0, of_group = 1, of_repeat = 1;
    for (std::size_t i = batches; i-- > 0;) {
      const std::int64_t place = rest % of_weights[i];
      rest /= of_weights[i];
      std::int64_t& whole = own[i] == 1 ? of_repeat : of_group;
      (own[i] == 1 ? repeat : group) += place * whole;
      whole *= of_weights[i];
    }
    const std::int64_t c = at / outputs % inputs, k = at % outputs;
    weights[static_cast<std::size_t>((((group * repeats + repeat) * outputs) + k) * inputs + c)] = w.at(at);
  }
  const Value y = call.append(Conv{.channels = narrow(call, *channels, 1, "number of channels"),
                                   .kernel = 1,
                                   .groups = narrow(call, groups, 1, "number of groups"),
                                   .bias = false},
                              {x.value}, call.name());
  call.weights(y, "weight", {*channels, inputs, 1, 1}, std::move(weights), w.type);

  const Shape after = y.shape();
  std::int64_t of_repeat = outputs * after.plane(), of_group = of_repeat * repeats;
  View view(rank);
  view[rank - 1] = axis(outputs, after.plane());
  for (std::size_t i = rank - 1; i-- > 0;) {
    const bool differs = i < batches && of_weights[i] != 1;
    if (differs) {
      std::int64_t& inner = own[i] == 1 ? of_repeat : of_group;
      view[i] = axis(of_weights[i], inner);
      inner *= of_weights[i];
    } else {
      view[i] = with_channels({x.view[i]}, before, after).front();
    }
  }
  return {.value = y, .view = std::move(view), .type = x.type};
}

}  // namespace

/// A vector is a matrix of one row, or of one column, whose axis the result does not have.
void import_matmul(Call& call) {
  Running x = call.running(0);
  const Constant& w = call.constant(1, "its second factor");
  if (x.view.empty() || w.extents.empty() || w.count() == 0) {
    call.attributes().invalid("multiplies " + text(extents(x.view)) + " by " + text(w.extents));
  }
  const bool row = x.view.size() == 1, column = w.extents.size() == 1;
  if (w.extents.size() > 2) {
    if (row) x.view.insert(x.view.begin(), Axis{});
    Running y = append_batched(call, x, w);
    if (row) y.view.erase(y.view.end() - 2);
    return call.result(std::move(y));
  }
  if (row) x.view.insert(x.view.begin(), Axis{});
  const std::int64_t outputs = column ? 1 : w.extents[1];
  Running y = append_product(call, x,
                             {.w = w,
                              .inputs = w.extents[0],
                              .outputs = outputs,
                              .input_stride = outputs,
                              .output_stride = 1,
                              .absorbs = !row && !column},
                             {});
  if (row) y.view.erase(y.view.begin());
  if (column) y.view.pop_back();
  call.result(std::move(y));
}

}  // namespace lamina::onnx
