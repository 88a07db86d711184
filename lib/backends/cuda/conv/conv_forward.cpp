// What a convolution's forward pass reads and does besides its sums.

#include "conv_forward.h"

#include "kernels/moves/copy.h"
#include "lib/backends/common/conv_tail.h"
#include "lib/core/numbers/rounding.h"

namespace lamina::LAMINA_CUDA_SPACE {

ConvForward conv_forward(const Conv& op, const Spec& spec) {
  const ConvTail tail = conv_tail(spec);
  return {.filters = op.channels,
          .weights = spec.w.at(0).shape.image(),
          .own_bias = op.bias,
          .folded = tail.norm != nullptr,
          .adds = tail.add,
          .relu = tail.relu,
          .epsilon = tail.norm != nullptr ? tail.norm->epsilon : 0};
}

int fold_roundings(const ConvForward& unit) { return (unit.folded ? 4 : 0) + (unit.adds ? 1 : 0); }

template <class T>
ForwardInputs<T> begin_forward(Stream stream, const ConvForward& unit, const Args& args) {
  if (unit.adds && !same_place(args.x[1], args.y)) copy(stream, view<const T>(args.x[1]), view<T>(args.y), false);
  if (unit.folded)
    return {prepared_filters<T>(unit, args), {static_cast<const T*>(args.prepared), unit.adds, unit.relu}};
  return {args.w[0].as<const T>(), {unit.own_bias ? args.w[1].as<const T>() : nullptr, unit.adds, unit.relu}};
}
template ForwardInputs<float> begin_forward(Stream, const ConvForward&, const Args&);
template ForwardInputs<double> begin_forward(Stream, const ConvForward&, const Args&);

template <class T>
std::size_t folded_bias_bytes(const ConvForward& unit) {
  return unit.folded ? aligned(static_cast<std::size_t>(unit.filters) * sizeof(T)) : 0;
}
template std::size_t folded_bias_bytes<float>(const ConvForward&);
template std::size_t folded_bias_bytes<double>(const ConvForward&);

template <class T>
T* prepared_filters(const ConvForward& unit, const Args& args) {
  return reinterpret_cast<T*>(static_cast<char*>(args.prepared) + folded_bias_bytes<T>(unit));
}
template float* prepared_filters(const ConvForward&, const Args&);
template double* prepared_filters(const ConvForward&, const Args&);

template <class T>
ConvFold<T> fold_of(const ConvForward& unit, const Args& args) {
  const std::size_t norm = unit.own_bias ? 2 : 1;  // the batch norm's first parameter
  return {{.scale = args.w[norm].as<const T>(),
           .shift = args.w[norm + 1].as<const T>(),
           .mean = args.state[0].as<const T>(),
           .variance = args.state[1].as<const T>(),
           .epsilon = unit.epsilon},
          args.w[0].as<const T>(),
          unit.own_bias ? args.w[1].as<const T>() : nullptr,
          unit.filters,
          unit.weights};
}
template ConvFold<float> fold_of(const ConvForward&, const Args&);
template ConvFold<double> fold_of(const ConvForward&, const Args&);

Lowered::Step fold_step(const ConvForward& unit, DType dtype, const std::string& algorithm, Machine& machine) {
  return with_type(dtype, [&]<class T>() {
    return launches(machine, {Pass::prepare}, algorithm, [unit](Stream stream, const Args& args) {
      conv_fold(stream, fold_of<T>(unit, args), prepared_filters<T>(unit, args), static_cast<T*>(args.prepared));
    });
  });
}

std::size_t fold_bytes(const ConvForward& unit, DType dtype) {
  return with_type(dtype, [&]<class T>() {
    return folded_bias_bytes<T>(unit) + static_cast<std::size_t>(unit.filters * unit.weights) * sizeof(T);
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
