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
void emit_steps(Lowered& unit, const Spec& spec, const Windows& windows, Machine& machine) {
  const auto without_places = [windows](Stream stream, const Args& args) {
    max_pool_forward<T, Place>(stream, windows, view<const T>(args.x[0]), view<T>(args.y), nullptr);
  };
  if (spec.mode == Mode::inference) return unit.steps.push_back(launches(machine, Pass::forward, without_places));
  unit.saved_bytes = static_cast<std::size_t>(spec.y.shape.count()) * sizeof(Place);
  unit.steps.push_back(launches(machine, Pass::forward, [windows](Stream stream, const Args& args) {
    max_pool_forward(stream, windows, view<const T>(args.x[0]), view<T>(args.y), static_cast<Place*>(args.saved));
  }));
  unit.steps.push_back(launches(machine, Pass::recompute, without_places));
  const auto backward = [windows](Stream stream, const Args& args, const Tensor& dx, bool adds) {
    max_pool_backward(stream, windows, view<const T>(args.dy), static_cast<const Place*>(args.saved), view<T>(dx),
                      adds);
  };
  unit.steps.push_back(launches(machine, Pass::backward_data, to_dx(spec, backward)));
}

}  // namespace

Lowered lower(const MaxPool& op, const Spec& spec, const Choice&, Machine& machine) {
  Lowered unit = empty_unit(spec);
  const Windows windows = windows_of(op, spec);
  with_storage(machine.backend, spec.y.dtype, [&]<class T>() {
    if (std::int64_t{windows.R} * windows.S <= 256)
      emit_steps<T, std::uint8_t>(unit, spec, windows, machine);
    else
      emit_steps<T, std::int32_t>(unit, spec, windows, machine);
  });
  return unit;
}

Lowered lower(const AveragePool& op, const Spec& spec, const Choice&, Machine& machine) {
  Lowered unit = empty_unit(spec);
  const Windows windows = windows_of(op, spec);
  with_storage(machine.backend, spec.y.dtype, [&]<class T>() {
    const auto forward = [windows, counts = op.count_padding](Stream stream, const Args& args) {
      average_pool_forward(stream, windows, counts, view<const T>(args.x[0]), view<T>(args.y));
    };
    const auto backward = [windows, counts = op.count_padding](Stream stream, const Args& args, const Tensor& dx,
                                                               bool adds) {
      average_pool_backward(stream, windows, counts, view<const T>(args.dy), view<T>(dx), adds);
    };
    add_launches(unit, spec, machine, forward, to_dx(spec, backward));
  });
  return unit;
}

Lowered lower(const GlobalAveragePool&, const Spec& spec, const Choice&, Machine& machine) {
  Lowered unit = empty_unit(spec);
  with_storage(machine.backend, spec.y.dtype, [&]<class T>() {
    const auto forward = [](Stream stream, const Args& args) {
      global_average_pool_forward(stream, view<const T>(args.x[0]), view<T>(args.y));
    };
    const auto backward = [](Stream stream, const Args& args, const Tensor& dx, bool adds) {
      global_average_pool_backward(stream, view<const T>(args.dy), view<T>(dx), adds);
    };
    add_launches(unit, spec, machine, forward, to_dx(spec, backward));
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
