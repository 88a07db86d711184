// Some channels of x: a copy, or nothing if a plan has placed y inside x. The gradient is dy there and zero elsewhere.

#include "channels.h"
#include "kernels/moves/copy.h"
#include "kernels/moves/fill.h"
#include "lib/backends/cuda/common.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T>
void forward(Stream stream, const Args& args, const Slice& op) {
  const Tensor x = channels_of(args.x[0], op.first, op.channels);
  if (!same_place(x, args.y)) copy(stream, view<const T>(x), view<T>(args.y), false);
}

template <class T>
void backward(Stream stream, const Args& args, const Slice& op, bool adds) {
  if (!wanted(args, 0)) return;
  const Tensor& dx = args.dx[0];
  const Tensor inside = channels_of(dx, op.first, op.channels);
  if (!adds) {
    const int end = op.first + op.channels;
    fill(stream, view<T>(channels_of(dx, 0, op.first)), 0);
    fill(stream, view<T>(channels_of(dx, end, dx.shape.c - end)), 0);
  }
  if (adds || !same_place(inside, args.dy)) copy(stream, view<const T>(args.dy), view<T>(inside), adds);
}

}  // namespace

Lowered lower(const Slice& op, const Spec& spec, const Choice&, Machine& machine) {
  Lowered unit = empty_unit(spec);
  with_storage(spec.y.dtype, [&]<class T>() {
    unit.steps.push_back(launches(machine, {Pass::forward}, "direct",
                                  [op](Stream stream, const Args& args) { forward<T>(stream, args, op); }));
    if (spec.mode == Mode::inference) return;
    const auto run_backward = [op, adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
      backward<T>(stream, args, op, adds);
    };
    unit.steps.push_back(launches(machine, {Pass::backward_data}, "direct", run_backward));
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
