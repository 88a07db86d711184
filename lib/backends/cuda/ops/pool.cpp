// Pooling. In training max pooling saves the position of the first maximum in each window: one byte, or four if windows
// have more than 256 cells. Averages save nothing, and their backward reads only dy.

#include "kernels/pool/pool.h"

#include <cstdint>

#include "lib/backends/cuda/common.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// A pooling op as its kernels see it.
template <class Pooling>
Windows windows_of(const Pooling& op, const Spec& spec) {
  const Shape &x = spec.x[0].shape, &y = spec.y.shape;
  return {x.h, x.w, y.h, y.w, op.window.h, op.window.w, op.stride.h, op.stride.w, op.pad.h, op.pad.w};
}

template <class T, class Place>
Lowered lower_max_pool(const Spec& spec, const Windows& windows, Machine& machine) {
  Lowered unit = empty_unit(spec);
  if (spec.mode == Mode::training) unit.saved_bytes = static_cast<std::size_t>(spec.y.shape.count()) * sizeof(Place);
  const auto forward = [windows](Stream stream, const Args& args) {
    max_pool_forward(stream, windows, view<const T>(args.x[0]), view<T>(args.y), static_cast<Place*>(args.saved));
  };
  const auto backward = [windows](Stream stream, const Args& args, const Tensor& dx, bool adds) {
    max_pool_backward(stream, windows, view<const T>(args.dy), static_cast<const Place*>(args.saved), view<T>(dx),
                      adds);
  };
  return with_launches(unit, spec, machine, forward, to_dx(spec, backward));
}

}  // namespace

Lowered lower(const MaxPool& op, const Spec& spec, const Choice&, Machine& machine) {
  const Windows windows = windows_of(op, spec);
  return with_storage(machine.backend, spec.y.dtype, [&]<class T>() {
    return std::int64_t{windows.R} * windows.S <= 256 ? lower_max_pool<T, std::uint8_t>(spec, windows, machine)
                                                      : lower_max_pool<T, std::int32_t>(spec, windows, machine);
  });
}

Lowered lower(const AveragePool& op, const Spec& spec, const Choice&, Machine& machine) {
  const Windows windows = windows_of(op, spec);
  return with_storage(machine.backend, spec.y.dtype, [&]<class T>() {
    const auto forward = [windows, counts = op.count_padding](Stream stream, const Args& args) {
      average_pool_forward(stream, windows, counts, view<const T>(args.x[0]), view<T>(args.y));
    };
    const auto backward = [windows, counts = op.count_padding](Stream stream, const Args& args, const Tensor& dx,
                                                               bool adds) {
      average_pool_backward(stream, windows, counts, view<const T>(args.dy), view<T>(dx), adds);
    };
    return with_launches(empty_unit(spec), spec, machine, forward, to_dx(spec, backward));
  });
}

Lowered lower(const GlobalAveragePool&, const Spec& spec, const Choice&, Machine& machine) {
  return lower(Reduce{.by = ReduceBy::mean, .rows = true, .columns = true}, spec, machine);
}

}  // namespace lamina::LAMINA_CUDA_SPACE
