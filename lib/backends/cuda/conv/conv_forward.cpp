// Inputs and epilogue of a convolution's forward pass.

#include "conv_forward.h"

#include "kernels/moves/moves.h"
#include "lib/core/numbers/rounding.h"

namespace lamina::LAMINA_CUDA_SPACE {

template <class T>
ForwardInputs<T> begin_forward(Stream stream, const ConvUnit& c, const Args& args) {
  if (c.add && !same_place(args.x[1], args.y)) copy(stream, view<const T>(args.x[1]), view<T>(args.y), false);
  if (c.folded) return {prepared_filters<T>(c, args), {static_cast<const T*>(args.prepared), c.add, c.relu}};
  return {args.w[0].as<const T>(), {c.op.bias ? args.w[1].as<const T>() : nullptr, c.add, c.relu}};
}
template ForwardInputs<float> begin_forward(Stream, const ConvUnit&, const Args&);
template ForwardInputs<double> begin_forward(Stream, const ConvUnit&, const Args&);

template <class T>
std::size_t folded_bias_bytes(const ConvUnit& c) {
  return c.folded ? aligned(static_cast<std::size_t>(c.op.channels) * sizeof(T)) : 0;
}
template std::size_t folded_bias_bytes<float>(const ConvUnit&);
template std::size_t folded_bias_bytes<double>(const ConvUnit&);

template <class T>
T* prepared_filters(const ConvUnit& c, const Args& args) {
  return reinterpret_cast<T*>(static_cast<char*>(args.prepared) + folded_bias_bytes<T>(c));
}
template float* prepared_filters(const ConvUnit&, const Args&);
template double* prepared_filters(const ConvUnit&, const Args&);

template <class T>
ConvFold<T> fold_of(const ConvUnit& c, const Args& args) {
  const std::size_t norm = c.op.bias ? 2 : 1;  // the batch norm's first parameter
  return {{.scale = args.w[norm].as<const T>(),
           .shift = args.w[norm + 1].as<const T>(),
           .mean = args.state[0].as<const T>(),
           .variance = args.state[1].as<const T>(),
           .epsilon = c.epsilon},
          args.w[0].as<const T>(),
          c.op.bias ? args.w[1].as<const T>() : nullptr,
          c.op.channels,
          c.filter_weights()};
}
template ConvFold<float> fold_of(const ConvUnit&, const Args&);
template ConvFold<double> fold_of(const ConvUnit&, const Args&);

Prepared folded(const ConvUnit& c, Machine& machine) {
  if (!c.folded) return {};
  return with_type(c.dtype, [&]<class T>() -> Prepared {
    return {folded_bias_bytes<T>(c) + static_cast<std::size_t>(c.weights()) * sizeof(T),
            launches(machine, {Pass::prepare}, "fold", [c](Stream stream, const Args& args) {
              conv_fold(stream, fold_of<T>(c, args), prepared_filters<T>(c, args), static_cast<T*>(args.prepared));
            })};
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
