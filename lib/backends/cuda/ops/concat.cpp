// The inputs concatenated on the channel axis: one copy each. An input that a plan has placed inside y
// is not copied.

#include "channels.h"
#include "kernels/moves/copy.h"
#include "lib/backends/cuda/common.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T>
void copy_unless_there(Stream stream, const Tensor& from, const Tensor& to, bool adds) {
  if (adds || !same_place(to, from)) copy(stream, view<const T>(from), view<T>(to), adds);
}

template <class T>
void forward(Stream stream, const Args& args) {
  int first = 0;
  for (const Tensor& x : args.x) {
    copy_unless_there<T>(stream, x, channels_of(args.y, first, x.shape.c), false);
    first += x.shape.c;
  }
}

template <class T>
void backward(Stream stream, const Args& args, const Spec& spec) {
  int first = 0;
  for (std::size_t i = 0; i < spec.x.size(); ++i) {
    const int channels = spec.x[i].shape.c;
    if (wanted(args, i))
      copy_unless_there<T>(stream, channels_of(args.dy, first, channels), args.dx[i], adds_dx(spec, i));
    first += channels;
  }
}

}  // namespace

Lowered lower(const Concat&, const Spec& spec, const Choice&, Machine& machine) {
  Lowered unit = empty_unit(spec);
  with_storage(spec.y.dtype, [&]<class T>() {
    unit.steps.push_back(launches(machine, {Pass::forward}, "direct",
                                  [](Stream stream, const Args& args) { forward<T>(stream, args); }));
    if (spec.mode == Mode::inference) return;
    unit.steps.push_back(launches(machine, {Pass::backward_data}, "direct",
                                  [spec](Stream stream, const Args& args) { backward<T>(stream, args, spec); }));
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
