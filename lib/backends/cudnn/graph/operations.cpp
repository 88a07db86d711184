// The operation graphs of units: one function for each kind of op.

#include "operations.h"

#include <algorithm>

#include "lamina/cudnn_engines.h"
#include "lamina/error.h"
#include "lib/backends/common/conv_unit.h"
#include "lib/backends/common/lowering.h"
#include "lib/backends/common/on_copies.h"
#include "lib/backends/common/unit_checks.h"
#include "lib/backends/cudnn/library/common.h"

namespace lamina::cudnn::graph {
namespace {

using Numbers = std::vector<std::int64_t>;

Part::Value type_of(DType dtype) { return {type_data_type, data_type_of(dtype)}; }
const Part::Value in_f32{type_data_type, data_type::f32};

/// Builds the graph of one spec, operation by operation.
class GraphBuilder {
 public:
  explicit GraphBuilder(const Spec& spec) : layout_(spec.y.layout), values_(spec.y.dtype) {}

  /// A dense tensor in the layout of the unit.
  PartRef dense(std::int64_t id, const Shape& s, const Part::Value& type, const Attributes& more = {}) const {
    const std::int64_t c = s.c, h = s.h, w = s.w;
    Attributes attributes = {
        {tensor_data_type, type},
        {tensor_dimensions, Numbers{s.n, c, h, w}},
        {tensor_strides, layout_ == Layout::nchw ? Numbers{c * h * w, h * w, w, 1} : Numbers{c * h * w, 1, w * c, c}},
        {tensor_id, id},
        {tensor_alignment, 16}};
    attributes.insert(attributes.end(), more.begin(), more.end());
    return part(tensor, std::move(attributes));
  }
  PartRef value(std::int64_t id, const Shape& shape) const { return dense(id, shape, type_of(values_)); }
  PartRef by_channel(std::int64_t id, int channels) const { return dense(id, {1, channels, 1, 1}, in_f32); }
  PartRef number(std::int64_t id) const { return dense(id, {}, in_f32, {{tensor_is_by_value, {type_boolean, 1}}}); }

  /// The result of an operation: a tensor with an id or, for not_stored, an f32 tensor for the next operation only.
  PartRef between(TensorId id, const Shape& shape) {
    return id != not_stored ? value(id, shape) : passed(shape, in_f32);
  }
  PartRef passed(const Shape& shape, const Part::Value& type) {
    return dense(first_virtual + virtuals_++, shape, type, {{tensor_is_virtual, {type_boolean, 1}}});
  }

  void operation(Kind kind, Attributes attributes) { operations_.push_back(part(kind, std::move(attributes))); }

  /// The operation mode(x, ...). `others` are its further operands and its result, by attribute.
  void element_wise(int mode, const PartRef& x, const Attributes& others) {
    const PartRef form =
        part(pointwise, {{pointwise_form, {type_pointwise_mode, mode}}, {pointwise_compute_type, in_f32}});
    Attributes attributes = {{operation_pointwise_form, form}, {operation_pointwise_x, x}};
    attributes.insert(attributes.end(), others.begin(), others.end());
    operation(operation_pointwise, std::move(attributes));
  }

  /// dx = dy where x > 0, else 0. The sign of y = relu(x) serves as well.
  void relu_backward(const PartRef& x, const PartRef& dy, const PartRef& dx) {
    element_wise(pointwise_relu_backward, x, {{operation_pointwise_dy, dy}, {operation_pointwise_dx, dx}});
  }

  /// Appends the operations of a forward pass that follow `y`: + bias, + addend, ReLU. Any of them may be missing.
  void finish(PartRef y, const Shape& shape, const PartRef& bias, const PartRef& addend, bool relu) {
    for (const PartRef& term : {bias, addend}) {
      if (term == nullptr) continue;
      const bool last = !relu && (term == addend || addend == nullptr);
      PartRef sum = between(last ? id_y : not_stored, shape);
      element_wise(pointwise_add, y, {{operation_pointwise_b, term}, {operation_pointwise_y, sum}});
      y = std::move(sum);
    }
    if (relu) element_wise(pointwise_relu, y, {{operation_pointwise_y, value(id_y, shape)}});
  }

  PartRef graph() { return part(operation_graph, {{graph_operations, std::move(operations_)}}); }

 private:
  Layout layout_;
  DType values_;
  std::int64_t virtuals_ = 0;
  std::vector<PartRef> operations_;
};

Numbers both(const Size& size) { return {size.h, size.w}; }

/// Forward is y = x * w, + bias, + addend, ReLU. Backward is dw, or dx, which may be masked by x. On halves w and dw
/// are halves as well.
PartRef graph_of(const Conv& op, const Spec& spec, Pass pass) {
  const ConvUnit unit = conv_unit(spec);
  GraphBuilder builder(spec);
  const bool forward = pass == Pass::forward, params = pass == Pass::backward_params;
  const bool plain = !forward || !(unit.has_bias() || unit.add || unit.relu);
  const PartRef y = builder.between(plain ? id_y : not_stored, unit.y);
  const bool adds = params ? unit.add_dw && !is_half(unit.values) : !forward && unit.add_dx;
  const bool masked = pass == Pass::backward_data && spec.masks_dx;
  const PartRef x = builder.between(masked ? not_stored : id_x, unit.x);

  const PartRef form = part(convolution, {{convolution_compute_type, in_f32},
                                          {convolution_form, {type_convolution_mode, cross_correlation}},
                                          {convolution_spatial_dimensions, 2},
                                          {convolution_dilations, both(op.dilation)},
                                          {convolution_strides, both(op.stride)},
                                          {convolution_pre_paddings, both(op.pad)},
                                          {convolution_post_paddings, both(op.pad)}});
  const Kind kind = forward ? operation_forward : params ? operation_backward_filter : operation_backward_data;
  const int first = forward ? forward_alpha : params ? backward_filter_alpha : backward_data_alpha;
  builder.operation(kind, {{first, {type_double, 1}},
                           {first + beta, {type_double, adds ? 1 : 0}},
                           {first + descriptor, form},
                           {first + weights, builder.value(id_w, spec.w.at(0).shape)},
                           {first + image, x},
                           {first + result, y}});
  if (!plain)
    builder.finish(y, unit.y, unit.has_bias() ? builder.by_channel(id_bias, unit.y.c) : nullptr,
                   unit.add ? builder.value(id_addend, unit.y) : nullptr, unit.relu);
  if (masked) builder.relu_backward(builder.value(id_x, unit.x), x, builder.value(id_dx, unit.x));
  return builder.graph();
}

PartRef graph_of(const FullyConnected&, const Spec& spec, Pass pass) {
  const Spec flat = as_convolution(spec);
  return graph_of(std::get<Conv>(flat.op), flat, pass);
}

PartRef graph_of(const Relu&, const Spec& spec, Pass pass) {
  GraphBuilder builder(spec);
  const Shape& shape = spec.y.shape;
  if (pass == Pass::forward)
    builder.finish(builder.value(id_x, shape), shape, nullptr, nullptr, true);
  else
    builder.relu_backward(builder.value(id_y, shape), builder.value(id_dy, shape), builder.value(id_dx, shape));
  return builder.graph();
}

PartRef graph_of(const Add&, const Spec& spec, Pass pass) {
  const bool relu = ends_in_relu(spec);
  if (pass != Pass::forward && !relu) refuse(spec.op, "its gradients are dy, so nothing runs");
  if (pass != Pass::forward) return graph_of(Relu{}, spec, pass);
  if (spec.x.size() != 2) refuse(spec.op, "there is a graph for two inputs only");
  GraphBuilder builder(spec);
  const Shape& shape = spec.y.shape;
  builder.finish(builder.value(id_x, shape), shape, nullptr, builder.value(id_addend, shape), relu);
  return builder.graph();
}

PartRef graph_of(const BatchNorm&, const Spec& spec, Pass pass) {
  if (spec.mode == Mode::inference)
    refuse(spec.op, "in inference there is a graph only where it follows a convolution");
  const auto [add, relu] = norm_tail(spec);
  const Shape& shape = spec.y.shape;
  GraphBuilder builder(spec);
  const auto channels = [&](std::int64_t id) { return builder.by_channel(id, shape.c); };
  if (pass == Pass::forward) {
    const PartRef y = builder.between(add || relu ? not_stored : id_y, shape);
    builder.operation(operation_norm_forward, {{norm_forward_form, {type_norm_mode, batch_norm}},
                                               {norm_forward_phase, {type_norm_phase, norm_training}},
                                               {norm_forward_x, builder.value(id_x, shape)},
                                               {norm_forward_mean, channels(id_mean)},
                                               {norm_forward_inverse, channels(id_inverse_deviation)},
                                               {norm_forward_scale, channels(id_w)},
                                               {norm_forward_shift, channels(id_bias)},
                                               {norm_forward_epsilon, builder.number(id_epsilon)},
                                               {norm_forward_momentum, builder.number(id_momentum)},
                                               {norm_forward_old_mean, channels(id_old_mean)},
                                               {norm_forward_old_variance, channels(id_old_variance)},
                                               {norm_forward_new_mean, channels(id_new_mean)},
                                               {norm_forward_new_variance, channels(id_new_variance)},
                                               {norm_forward_y, y}});
    if (add || relu) builder.finish(y, shape, nullptr, add ? builder.value(id_addend, shape) : nullptr, relu);
    return builder.graph();
  }
  PartRef dy = builder.value(id_dy, shape);
  if (masks_norm(spec)) {  // no engine takes relu_backward() here
    const PartRef positive = builder.passed(shape, {type_data_type, data_boolean});
    builder.element_wise(pointwise_greater, builder.value(id_y, shape),
                         {{operation_pointwise_b, builder.number(id_zero)}, {operation_pointwise_y, positive}});
    const PartRef masked =
        wants_addend_gradient(spec) ? builder.value(id_masked, shape) : builder.passed(shape, type_of(spec.y.dtype));
    builder.element_wise(pointwise_multiply, dy, {{operation_pointwise_b, positive}, {operation_pointwise_y, masked}});
    dy = masked;
  }
  builder.operation(operation_norm_backward, {{norm_backward_form, {type_norm_mode, batch_norm}},
                                              {norm_backward_x, builder.value(id_x, shape)},
                                              {norm_backward_mean, channels(id_mean)},
                                              {norm_backward_inverse, channels(id_inverse_deviation)},
                                              {norm_backward_dy, dy},
                                              {norm_backward_scale, channels(id_w)},
                                              {norm_backward_dscale, channels(id_dw)},
                                              {norm_backward_dshift, channels(id_dbias)},
                                              {norm_backward_dx, builder.value(id_dx, shape)}});
  return builder.graph();
}

/// In training, a max pool stores the index of the value that each window took, as the library counts values.
PartRef pool_graph(const Spec& spec, Pass pass, const Size& window, const Size& stride, const Size& pad, int mode) {
  const Shape &x = spec.x.at(0).shape, &y = spec.y.shape;
  const int padding = mode == resample_max ? padding_minus_infinity : padding_zero;
  const PartRef form = part(resample, {{resample_form, {type_resample_mode, mode}},
                                       {resample_compute_type, in_f32},
                                       {resample_padding, {type_padding_mode, padding}},
                                       {resample_spatial_dimensions, 2},
                                       {resample_window, {type_fraction, both(window)}},
                                       {resample_strides, {type_fraction, both(stride)}},
                                       {resample_pre_paddings, {type_fraction, both(pad)}},
                                       {resample_post_paddings,
                                        {type_fraction,
                                         {covered(x.h, y.h, window.h, stride.h, pad.h) - x.h + pad.h,
                                          covered(x.w, y.w, window.w, stride.w, pad.w) - x.w + pad.w}}}});
  GraphBuilder builder(spec);
  const PartRef index = builder.dense(id_index, y, {type_data_type, data_int8});
  const bool forward = pass == Pass::forward, maxima = mode == resample_max;
  Attributes attributes = {
      {forward ? resample_forward_form : resample_backward_form, form},
      {forward ? resample_forward_x : resample_backward_dx, builder.value(forward ? id_x : id_dx, x)},
      {forward ? resample_forward_y : resample_backward_dy, builder.value(forward ? id_y : id_dy, y)}};
  if (maxima && spec.mode == Mode::training)
    attributes.emplace_back(forward ? resample_forward_index : resample_backward_index, index);
  builder.operation(forward ? operation_resample_forward : operation_resample_backward, std::move(attributes));
  return builder.graph();
}

PartRef graph_of(const MaxPool& op, const Spec& spec, Pass pass) {
  return pool_graph(spec, pass, op.window, op.stride, op.pad, resample_max);
}

PartRef graph_of(const AveragePool& op, const Spec& spec, Pass pass) {
  if (op.count_padding && op.rounding == Rounding::up)
    refuse(spec.op, "no graph counts padding but not the cells beyond it");
  return pool_graph(spec, pass, op.window, op.stride, op.pad,
                    op.count_padding ? resample_average_all : resample_average);
}

PartRef graph_of(const GlobalAveragePool&, const Spec& spec, Pass pass) {
  const Size all{spec.x.at(0).shape.h, spec.x.at(0).shape.w};
  return pool_graph(spec, pass, all, all, 0, resample_average);
}

template <class T>
PartRef graph_of(const T&, const Spec& spec, Pass) {
  refuse(spec.op, "no graph; the backend cudnn has other calls for it, or our kernels");
}

}  // namespace

bool masks_norm(const Spec& spec) { return ends_in_relu(spec) && spec.y.layout == Layout::nhwc; }

bool wants_addend_gradient(const Spec& spec) {
  return norm_tail(spec).add && spec.wants_dx.size() > 1 && spec.wants_dx[1];
}

PartRef operation_graph_of(const Spec& spec, Pass pass) {
  if (std::ranges::none_of(cudnn_graphs(spec), [&](const auto& graph) { return graph.second == pass; }))
    throw UsageError("cudnn-graph: " + to_string(spec.op) + " has no graph of the pass " +
                     std::string(to_string(pass)));
  if (spec.y.dtype == DType::f64 || !has_one_type(spec)) refuse(spec.op, "all values must be f32, f16 or bf16");
  const bool product = holds<Conv, FullyConnected>(spec.op);
  if (!product && pass != Pass::forward && (adds_dx(spec, 0) || spec.adds_dw))
    refuse(spec.op, "the graph of its gradient cannot add to the old contents");
  return std::visit([&](const auto& op) { return graph_of(op, spec, pass); }, spec.op);
}

bool joins_graph(const Spec& spec, std::size_t count, const Op& next) {
  return holds<Conv, FullyConnected, BatchNorm, Add>(spec.op) && holds<BatchNorm, Add, Relu>(next) &&
         default_fusion(spec.op, spec.tail, count, next, spec.mode);
}

bool joins_gradient(const Spec& spec, const Spec& reader) {
  const bool nhwc = reader.y.layout == Layout::nhwc || holds<FullyConnected>(reader.op);
  return nhwc && holds<Conv, FullyConnected>(spec.op) && holds<Conv, FullyConnected>(reader.op) &&
         spec.y.dtype != DType::f64 && has_one_type(spec) && has_one_type(reader);
}

Spec as_convolution(const Spec& spec) {
  const auto& op = std::get<FullyConnected>(spec.op);
  Spec flat = spec;
  const Shape& x = spec.x.at(0).shape;
  const int features = static_cast<int>(x.image());
  flat.op = Conv{.channels = op.outputs, .kernel = 1, .bias = op.bias};
  flat.x[0].shape = {x.n, features, 1, 1};
  flat.w.at(0).shape = {op.outputs, features, 1, 1};
  for (TensorSpec* const tensor : {&flat.x[0], &flat.w[0]}) tensor->pitch = tensor->gradient_pitch = features;
  for (std::vector<TensorSpec>* const all : {&flat.x, &flat.w})
    for (TensorSpec& tensor : *all) tensor.layout = Layout::nhwc;
  flat.y.layout = Layout::nhwc;
  return flat;
}

}  // namespace lamina::cudnn::graph
