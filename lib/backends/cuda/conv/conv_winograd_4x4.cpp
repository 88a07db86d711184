// Convolution by Winograd's F(4x4, 3x3): y from x, and dx from dy with the filters flipped and transposed; dw is in a
// separate file.

#include "conv_winograd_4x4.h"

#include <cstdint>
#include <limits>

#include "conv.h"
#include "kernels/winograd/conv_winograd_4x4.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

WinogradFilters filters_of(const Conv& op, const Spec& spec, Pass pass) {
  const int filters = op.channels / op.groups, channels = spec.x[0].shape.c / op.groups;
  if (pass == Pass::backward_data) return {op.groups, channels, filters, true};
  return {op.groups, filters, channels, false};
}

template <class T>
std::size_t filter_bytes(const Conv& op, const Spec& spec, Pass pass) {
  return static_cast<std::size_t>(winograd_4x4_filter_count<T>(filters_of(op, spec, pass))) * sizeof(T);
}

template <class T>
Lowered::Step prepare_step(const Conv& op, const Spec& spec, Machine& machine) {
  return launches(machine, {Pass::prepare}, winograd_4x4_name,
                  [filters = filters_of(op, spec, Pass::forward), forward = conv_forward(op, spec)](Stream stream,
                                                                                                    const Args& args) {
                    T* const to = prepared_filters<T>(forward, args);
                    if (!forward.folded) return winograd_4x4_filters(stream, filters, args.w[0].as<const T>(), to);
                    const ConvFold<T> fold = fold_of<T>(forward, args);
                    winograd_4x4_filters(stream, filters, fold.w, to, fold.norm);
                    conv_fold<T>(stream, fold, nullptr, static_cast<T*>(args.prepared));
                  });
}

template <class T>
Lowered::Step forward_step(const Conv& op, const Spec& spec, Machine& machine) {
  const bool prepared = spec.mode == Mode::inference;
  return launches(
      machine, {Pass::forward}, winograd_4x4_name,
      [op, prepared, forward = conv_forward(op, spec), filters = filters_of(op, spec, Pass::forward)](
          Stream stream, const Args& args) {
        const ForwardInputs<T> in = begin_forward<T>(stream, forward, args);
        T* const transformed = prepared ? prepared_filters<T>(forward, args) : static_cast<T*>(args.workspace);
        if (!prepared) winograd_4x4_filters(stream, filters, in.w, transformed);
        WinogradConv<T> conv;
        conv.filters = filters;
        conv.transformed = transformed;
        conv.x = view<const T>(args.x[0]);
        conv.y = view<T>(args.y);
        conv.bias = in.end.bias;
        conv.pad_h = op.pad.h;
        conv.pad_w = op.pad.w;
        conv.adds = in.end.adds;
        conv.relu = in.end.relu;
        winograd_4x4(stream, conv);
      },
      prepared ? 0 : filter_bytes<T>(op, spec, Pass::forward));
}

template <class T>
Lowered::Step backward_data_step(const Conv& op, const Spec& spec, Machine& machine) {
  const bool masked = ends_in_relu(spec), adds = adds_dx(spec, 0);
  return launches(
      machine, {Pass::backward_data}, winograd_4x4_name,
      [op, masked, adds, filters = filters_of(op, spec, Pass::backward_data)](Stream stream, const Args& args) {
        if (!wanted(args, 0)) return;
        T* const transformed = static_cast<T*>(args.workspace);
        winograd_4x4_filters(stream, filters, args.w[0].as<const T>(), transformed);
        WinogradConv<T> conv;
        conv.filters = filters;
        conv.transformed = transformed;
        conv.x = view<const T>(args.dy);
        if (masked) conv.mask = view<const T>(args.y);
        conv.y = view<T>(args.dx[0]);
        conv.pad_h = 2 - op.pad.h;
        conv.pad_w = 2 - op.pad.w;
        conv.adds = adds;
        winograd_4x4(stream, conv);
      },
      filter_bytes<T>(op, spec, Pass::backward_data));
}

}  // namespace

std::string winograd_4x4_refusal(const Conv& op, const Spec& spec) {
  constexpr int most_groups = 65535;                                       // of a grid along y
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();  // of a grid along x, and of an int
  if (op.kernel.h != 3 || op.kernel.w != 3)
    return "winograd_4x4 takes 3x3 kernels, not " + std::to_string(op.kernel.h) + "x" + std::to_string(op.kernel.w);
  if (op.stride.h != 1 || op.stride.w != 1)
    return "winograd_4x4 takes stride 1, not " + std::to_string(op.stride.h) + "x" + std::to_string(op.stride.w);
  if (op.dilation.h != 1 || op.dilation.w != 1)
    return "winograd_4x4 takes dilation 1, not " + std::to_string(op.dilation.h) + "x" + std::to_string(op.dilation.w);
  if (op.groups > most_groups)
    return "winograd_4x4 takes up to " + std::to_string(most_groups) + " groups, not " + std::to_string(op.groups);
  const std::int64_t weights = std::int64_t{op.channels / op.groups} * (spec.x[0].shape.c / op.groups) * 9;
  if (weights > most)
    return "winograd_4x4 takes up to " + std::to_string(most) + " weights of a group, not " + std::to_string(weights);
  for (const Shape& shape : {spec.x[0].shape, spec.y.shape})
    if (shape.count() / 16 > most)  // more than a grid's blocks: each computes 16 results or more
      return "winograd_4x4 takes up to " + std::to_string(16 * most) + " elements of a tensor, not " +
             std::to_string(shape.count());
  return {};
}

bool winograd_4x4_pays(const Conv& op, const Spec& spec, Pass pass) {
  if (pass == Pass::backward_params) return winograd_4x4_weights_pay(op, spec);
  if (spec.y.dtype != DType::f32 || !winograd_4x4_refusal(op, spec).empty()) return false;
  if (!implicit_gemm_refusal(op, spec).empty()) return true;
  const WinogradFilters filters = filters_of(op, spec, pass);
  const Shape& made = pass == Pass::backward_data ? spec.x[0].shape : spec.y.shape;
  const std::int64_t transform = spec.mode == Mode::inference ? 0 : winograd_4x4_filter_cycles(filters);
  return transform + winograd_4x4_cycles(filters, made.n, made.h, made.w) < implicit_gemm_cycles(op, spec, pass);
}

Lowered::Step winograd_4x4_step(const Conv& op, const Spec& spec, Pass pass, Machine& machine) {
  return with_type(spec.y.dtype, [&]<class T>() {
    switch (pass) {
      case Pass::prepare: return prepare_step<T>(op, spec, machine);
      case Pass::backward_params: return winograd_4x4_weights_step(op, spec, machine);
      case Pass::backward_data: return backward_data_step<T>(op, spec, machine);
      default: return forward_step<T>(op, spec, machine);
    }
  });
}

std::size_t winograd_4x4_prepared_bytes(const Conv& op, const Spec& spec) {
  if (spec.mode != Mode::inference) return 0;
  return with_type(spec.y.dtype, [&]<class T>() {
    return folded_bias_bytes<T>(conv_forward(op, spec)) + filter_bytes<T>(op, spec, Pass::forward);
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
