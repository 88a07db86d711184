// Gemm and MatMul with constant weights: fully connected ops, or 1x1 convolutions if rows are pixels. The columns of
// the weights are permuted by the order in which the input was flattened.

#include <algorithm>

#include "lib/onnx/operators.h"

namespace lamina::onnx {
namespace {

/// A product with a matrix. The matrix has a row for each input and a column for each output, or is `transposed`.
struct Product {
  const Constant& w;
  bool transposed;
  std::string_view name;  ///< name of w in the file
  double scale = 1;
  bool fuses = true;  ///< whether an Add after the product may become its bias

  std::int64_t inputs() const { return w.extents[transposed ? 1 : 0]; }
  std::int64_t outputs() const { return w.extents[transposed ? 0 : 1]; }
  double at(std::int64_t input, std::int64_t output) const {
    return scale * w.at(transposed ? output * inputs() + input : input * outputs() + output);
  }
};

DynamicValue append_product(NodeContext& context, DynamicValue x, const Product& product, Bias bias,
                            const std::string& name) {
  const std::int64_t inputs = product.inputs();
  Shape shape = x.value.shape();
  const std::size_t last = x.view.size() - 1;
  Extents result = extents(x.view);
  if (result[last] != inputs) context.invalid("multiplies " + text(result) + " by " + text(product.w.extents));
  result[last] = product.outputs();
  const int outputs = narrow(context, product.outputs(), 1, "number of outputs");
  context.consume_budget(inputs);  // for `columns`
  if (bias.values.empty() && product.fuses) bias = context.fuse_bias(result, last);
  const bool adds = !bias.values.empty();
  const auto is_within = [&](const OnnxFactor& factor) { return factor.extent * factor.stride <= shape.image(); };
  const bool rows_are_images = x.view.size() == 2 && x.view[0] == axis(shape.n, shape.image()) &&
                               inputs == shape.image() && std::ranges::all_of(x.view[1], is_within);
  if (!rows_are_images && (x.view[last] != axis(shape.c, shape.plane()) || inputs != shape.c)) {
    x = in_order(context, x, channels_last(x.view.size()), name + ".x");
    shape = x.value.shape();
  }
  const Op op = rows_are_images ? Op(FullyConnected{.outputs = outputs, .bias = adds})
                                : Op(Conv{.channels = outputs, .kernel = 1, .bias = adds});
  const Value y = context.append(op, {x.value}, name);
  Extents columns;  // column of each input in the graph's order
  for_each_place(rows_are_images ? x.view[1] : axis(shape.c, 1), 0, [&](std::int64_t at) { columns.push_back(at); });
  context.consume_budget(element_count({inputs, outputs}).value());
  std::vector<double> weights(columns.size() * static_cast<std::size_t>(outputs));
  for (std::int64_t k = 0; k < outputs; ++k)
    for (std::int64_t c = 0; c < inputs; ++c)
      weights[static_cast<std::size_t>(k * inputs + columns[static_cast<std::size_t>(c)])] = product.at(c, k);
  Extents filters = {outputs, inputs};
  if (!rows_are_images) filters.insert(filters.end(), {1, 1});
  context.weights(y, "weight", filters, std::move(weights), product.w.type,
                  {.value = product.name, .transposed = !product.transposed && outputs != 1});
  if (adds) context.weights(y, "bias", {outputs}, std::move(bias.values), product.w.type, bias.source);
  if (rows_are_images) return {.value = y, .view = layout_of(result, "nc").view, .type = x.type};
  return {.value = y, .view = with_channels(x.view, last, shape, outputs), .type = x.type};
}

void import_gemm(NodeContext& context) {
  DynamicValue x = context.dynamic(0);
  const Constant& w = context.constant(1, "its second factor");
  if (x.view.size() != 2 || w.extents.size() != 2 || w.count() == 0)
    context.invalid("multiplies " + text(extents(x.view)) + " by " + text(w.extents));
  if (context.integer("transA", 0) != 0) std::swap(x.view[0], x.view[1]);
  Product product{.w = w,
                  .transposed = context.integer("transB", 0) != 0,
                  .name = context.input_name(1),
                  .scale = context.number("alpha", 1)};
  Bias bias;
  const bool adds_running = context.has(2) && !context.is_constant(2);
  if (context.has(2) && !adds_running) {
    const Constant& c = context.constant(2, "what it adds");
    const std::size_t rank = c.extents.size();
    if (c.count() != 1 && (c.count() != product.outputs() || c.extents[rank - 1] != product.outputs()))
      throw Refusal{"it adds " + text(c.extents) + " to rows of " + std::to_string(product.outputs()) +
                    ": only one number for each column is read, as nn.Linear's bias"};
    context.consume_budget(product.outputs());
    bias.source.value = context.input_name(2);
    for (std::int64_t k = 0; k < product.outputs(); ++k)
      bias.values.push_back(context.number("beta", 1) * c.at(c.count() == 1 ? 0 : k));
    drop_zeros(context, bias.values, 2);
  }
  if (!adds_running) return context.result(append_product(context, x, product, std::move(bias), context.name()));
  product.fuses = false;
  if (context.number("beta", 1) != 1) throw Refusal{"it scales what it adds: use torch.addmm with beta=1"};
  const DynamicValue& added = context.dynamic(2);
  const std::string name = context.name();
  DynamicValue y = append_product(context, x, product, {}, name + ".product");
  if (added.view != y.view || added.value.shape() != y.value.shape())
    throw Refusal{"it adds " + text(extents(added.view)) + " to " + text(extents(y.view)) +
                      ": only values of the same extents and order are added",
                  extents(added.view) == extents(y.view)};
  y.value = context.append(Add{}, {y.value, added.value}, name);
  context.result(std::move(y));
}

/// A product of two computed values, one of them a row or a column: the sums of the products of their elements.
void multiply_by_vector(NodeContext& context) {
  const DynamicValue& a = context.dynamic(0);
  DynamicValue b = context.dynamic(1);
  const std::size_t rank = a.view.size(), last = rank - 1;
  const Extents of_a = extents(a.view), of_b = extents(b.view);
  if (rank < 2 || of_b.size() != rank || (of_a[last - 1] != 1 && of_b[last] != 1))
    throw Refusal{"both its factors are computed, and neither is a row or a column: the second must be a constant"};
  if (of_a[last] != of_b[last - 1]) context.invalid("multiplies " + text(of_a) + " by " + text(of_b));
  std::swap(b.view[last - 1], b.view[last]);
  const DynamicValue products =
      joined(context, BinaryFunction::multiply, a, std::move(b), context.name() + ".products");
  std::vector<char> over(rank, 0);
  over[last] = 1;
  DynamicValue y =
      reduce(context, whole_axes(context, products, over, false), over, ReduceBy::sum, context.name(), true);
  if (of_b[last] != 1) std::swap(y.view[last - 1], y.view[last]);
  context.result(std::move(y));
}

void import_matmul(NodeContext& context) {
  if (context.is_constant(0))
    throw Refusal{"its first factor is a constant: only the second may be one; write w @ x as (x.mT @ w.mT).mT"};
  if (!context.is_constant(1)) return multiply_by_vector(context);
  const DynamicValue& x = context.dynamic(0);
  const Constant& w = context.constant(1, "its second factor");
  if (x.view.empty() || w.extents.empty() || w.count() == 0)
    context.invalid("multiplies " + text(extents(x.view)) + " by " + text(w.extents));
  if (x.view.size() < 2 || w.extents.size() != 2)
    throw Refusal{"a product of " + text(extents(x.view)) + " and " + text(w.extents) +
                  " is not supported: only rows by one constant matrix are"};
  const Product product{.w = w, .transposed = false, .name = context.input_name(1)};
  context.result(append_product(context, x, product, {}, context.name()));
}

}  // namespace

Operators linear_operators() { return {{{"Gemm"}, import_gemm}, {{"MatMul"}, import_matmul}}; }

}  // namespace lamina::onnx
