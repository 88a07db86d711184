// Convolution by Winograd's F(4x4, 3x3): y from x, and dx from dy with the filters flipped and transposed; dw is in a
// separate file.

#include "conv_winograd_4x4.h"

#include <cstdint>
#include <limits>

#include "conv_step.h"
#include "kernels/winograd/conv_winograd_4x4.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

WinogradFilters filters_of(const ConvUnit& c, Pass pass) {
  if (pass == Pass::backward_data) return {c.op.groups, c.group_channels(), c.group_filters(), true};
  return {c.op.groups, c.group_filters(), c.group_channels(), false};
}

template <class T>
std::size_t filter_bytes(const ConvUnit& c, Pass pass) {
  return static_cast<std::size_t>(winograd_4x4_filter_count<T>(filters_of(c, pass))) * sizeof(T);
}

template <class T>
Lowered::Step prepare_step(const ConvUnit& c, Machine& machine) {
  return launches(machine, {Pass::prepare}, winograd_4x4_name,
                  [c, filters = filters_of(c, Pass::forward)](Stream stream, const Args& args) {
                    T* const to = prepared_filters<T>(c, args);
                    if (!c.folded) return winograd_4x4_filters(stream, filters, args.w[0].as<const T>(), to);
                    const ConvFold<T> fold = fold_of<T>(c, args);
                    winograd_4x4_filters(stream, filters, fold.w, to, fold.norm);
                    conv_fold<T>(stream, fold, nullptr, static_cast<T*>(args.prepared));
                  });
}

template <class T>
Lowered::Step forward_step(const ConvUnit& c, Machine& machine) {
  return launches(
      machine, {Pass::forward}, winograd_4x4_name,
      [c, filters = filters_of(c, Pass::forward)](Stream stream, const Args& args) {
        const ForwardInputs<T> in = begin_forward<T>(stream, c, args);
        T* const transformed = c.inference ? prepared_filters<T>(c, args) : static_cast<T*>(args.workspace);
        if (!c.inference) winograd_4x4_filters(stream, filters, in.w, transformed);
        WinogradConv<T> conv;
        conv.filters = filters;
        conv.transformed = transformed;
        conv.x = view<const T>(args.x[0]);
        conv.y = view<T>(args.y);
        conv.bias = in.end.bias;
        conv.pad_h = c.op.pad.h;
        conv.pad_w = c.op.pad.w;
        conv.adds = in.end.adds;
        conv.relu = in.end.relu;
        winograd_4x4(stream, conv);
        apply(stream, c.activation, args.y);
      },
      c.inference ? 0 : filter_bytes<T>(c, Pass::forward));
}

template <class T>
Lowered::Step backward_data_step(const ConvUnit& c, Machine& machine) {
  return launches(
      machine, {Pass::backward_data}, winograd_4x4_name,
      [c, filters = filters_of(c, Pass::backward_data)](Stream stream, const Args& args) {
        if (!wanted(args, 0)) return;
        T* const transformed = static_cast<T*>(args.workspace);
        winograd_4x4_filters(stream, filters, args.w[0].as<const T>(), transformed);
        WinogradConv<T> conv;
        conv.filters = filters;
        conv.transformed = transformed;
        conv.x = view<const T>(args.dy);
        if (c.relu) conv.mask = view<const T>(args.y);
        conv.y = view<T>(args.dx[0]);
        conv.pad_h = 2 - c.op.pad.h;
        conv.pad_w = 2 - c.op.pad.w;
        conv.adds = c.add_dx;
        winograd_4x4(stream, conv);
      },
      filter_bytes<T>(c, Pass::backward_data));
}

}  // namespace

std::string winograd_4x4_refusal(const ConvUnit& c, Pass, Machine&) {
  constexpr int most_groups = 65535;                                       // limit of a grid along y
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();  // limit of a grid along x, and of an int
  const std::string self = winograd_4x4_name;
  if (const std::string refused = winograd_refusal(c.op, 4); !refused.empty()) return self + " " + refused;
  if (c.op.groups > most_groups) return limit(self, "groups", most_groups, c.op.groups);
  const std::int64_t weights = c.group_filters() * c.filter_weights();
  if (weights > most) return limit(self, "weights of a group", most, weights);
  for (const Shape& shape : {c.x, c.y})
    if (shape.count() / 16 > most)  // more than a grid's blocks: each computes 16 results or more
      return limit(self, "elements of a tensor", 16 * most, shape.count());
  return {};
}

bool winograd_4x4_pays(const ConvUnit& c, Pass pass, Machine& machine) {
  if (c.dtype != DType::f32) return false;
  if (pass == Pass::backward_params) return winograd_4x4_weights_pay(c);
  if (!implicit_gemm_refusal(c, pass, machine).empty()) return true;
  const WinogradFilters filters = filters_of(c, pass);
  const Shape& made = pass == Pass::backward_data ? c.x : c.y;
  const std::int64_t transform = c.inference ? 0 : winograd_4x4_filter_cycles(filters);
  return transform + winograd_4x4_cycles(filters, made.n, made.h, made.w) < implicit_gemm_cycles(c, pass);
}

Lowered::Step winograd_4x4_step(const ConvUnit& c, Pass pass, const Choice&, Machine& machine) {
  return with_type(c.dtype, [&]<class T>() {
    switch (pass) {
      case Pass::backward_params: return winograd_4x4_weights_step(c, machine);
      case Pass::backward_data: return backward_data_step<T>(c, machine);
      default: return forward_step<T>(c, machine);
    }
  });
}

Prepared winograd_4x4_filters(const ConvUnit& c, Machine& machine) {
  return with_type(c.dtype, [&]<class T>() -> Prepared {
    return {folded_bias_bytes<T>(c) + filter_bytes<T>(c, Pass::forward), prepare_step<T>(c, machine)};
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
