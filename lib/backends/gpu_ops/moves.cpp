// Ops that move elements: padding by a constant or by copies of cells, axes in another order, parts of images.

#include "kernels/moves/moves.h"

#include "gpu_ops.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

static_assert(static_cast<int>(BorderOf::value) == static_cast<int>(PadBy::value) &&
              static_cast<int>(BorderOf::edge) == static_cast<int>(PadBy::edge) &&
              static_cast<int>(BorderOf::reflect) == static_cast<int>(PadBy::reflect) &&
              static_cast<int>(BorderOf::wrap) == static_cast<int>(PadBy::wrap));

ReorderAxes kernel_axes(const std::vector<CopyAxis>& axes) {
  ReorderAxes all;
  for (const CopyAxis& axis : axes)
    all.axes[all.count++] = {static_cast<int>(axis.extent), static_cast<int>(axis.from), static_cast<int>(axis.to)};
  return all;
}

/// `count` elements of each image, from `first` on. In nhwc they are whole channels, and the view's images are pixels.
template <class T>
View<T> run(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  const std::int64_t pixels = tensor.layout == Layout::nhwc ? tensor.shape.plane() : 1;
  const View<T> images = pixel_rows<T>(tensor);
  return {images.data + first / pixels, images.n, 1, 1, static_cast<int>(count / pixels), images.pitch};
}

/// The axes of a copy from the box of each image to a dense part or, with `spreads`, from the part to the box.
ReorderAxes axes_of(const Box& box, bool spreads) {
  std::vector<CopyAxis> axes;
  std::int64_t within = 1;
  for (std::size_t i = box.axes.size(); i-- > 0; within *= box.axes[i].part)
    axes.insert(axes.begin(),
                CopyAxis{box.axes[i].part, spreads ? within : box.apart(i), spreads ? box.apart(i) : within});
  return kernel_axes(axes);
}

/// Copies between the box of a whole tensor and a dense part: to the part or, with `spreads`, to the box.
template <class T>
void move_box(Stream stream, const Tensor& from, const Tensor& to, const Box& box, bool spreads, bool adds) {
  const std::int64_t size = (spreads ? from : to).shape.image();
  const View<const T> source = run<const T>(from, spreads ? 0 : box.offset(), size);
  const View<T> target = run<T>(to, spreads ? box.offset() : 0, size);
  if (!box.is_run()) return reorder(stream, source, axes_of(box, spreads), target, adds, spreads);
  if (adds || source.data != target.data || source.pitch != target.pitch) copy(stream, source, target, adds);
}

/// Sets `whole` to 0 outside the box; if the box is not a run, inside as well.
template <class T>
void clear_around(Stream stream, const Tensor& whole, const Box& box, std::int64_t part) {
  const std::int64_t end = box.is_run() ? box.offset() + part : 0;
  if (box.is_run()) fill(stream, run<T>(whole, 0, box.offset()), 0);
  fill(stream, run<T>(whole, end, whole.shape.image() - end), 0);
}

}  // namespace

Lowered lower(const Pad& op, const Spec& spec, const Launcher& on) {
  const Border border{op.channels_before, op.before.h, op.before.w, static_cast<BorderOf>(op.by)};
  return with_type(on.backend, spec.y.dtype, [&]<class T>() {
    return with_launches(
        empty_unit(spec), spec, on,
        [border, value = static_cast<T>(op.value)](Stream stream, const Args& args) {
          pad_forward(stream, view<const T>(args.x[0]), border, value, view<T>(args.y));
        },
        to_dx(spec, [border](Stream stream, const Args& args, const Tensor& dx, bool adds) {
          pad_backward(stream, view<const T>(args.dy), border, view<T>(dx), adds);
        }));
  });
}

Lowered lower(const Reorder& op, const Spec& spec, const Launcher& on) {
  const std::vector<CopyAxis> axes = copy_axes(op);
  return with_storage(on.backend, spec.y.dtype, [&]<class T>() {
    return with_launches(
        reorder_unit(spec, axes), spec, on,
        [axes = kernel_axes(axes)](Stream stream, const Args& args) {
          if (!same_place(args.x[0], args.y)) reorder(stream, view<const T>(args.x[0]), axes, view<T>(args.y), false);
        },
        to_dx(spec, [axes = kernel_axes(inverse(axes))](Stream stream, const Args& args, const Tensor& dx, bool adds) {
          if (!same_place(dx, args.dy)) reorder(stream, view<const T>(args.dy), axes, view<T>(dx), adds);
        }));
  });
}

Lowered lower(const Slice& op, const Spec& spec, const Launcher& on) {
  const Box box = box_of(op, spec.x[0].shape);
  return with_storage(on.backend, spec.y.dtype, [&]<class T>() {
    return with_launches(
        empty_unit(spec), spec, on,
        [box](Stream stream, const Args& args) { move_box<T>(stream, args.x[0], args.y, box, false, false); },
        to_dx(spec, [box](Stream stream, const Args& args, const Tensor& dx, bool adds) {
          if (!adds) clear_around<T>(stream, dx, box, args.dy.shape.image());
          move_box<T>(stream, args.dy, dx, box, true, adds);
        }));
  });
}

Lowered lower(const Concat& op, const Spec& spec, const Launcher& on) {
  const std::vector<Box> boxes = boxes_of(op, spec);
  return with_storage(on.backend, spec.y.dtype, [&]<class T>() {
    return with_launches(
        empty_unit(spec), spec, on,
        [boxes](Stream stream, const Args& args) {
          for (std::size_t i = 0; i < boxes.size(); ++i) move_box<T>(stream, args.x[i], args.y, boxes[i], true, false);
        },
        [boxes, spec](Stream stream, const Args& args) {
          for (std::size_t i = 0; i < boxes.size(); ++i)
            if (wanted(args, i)) move_box<T>(stream, args.dy, args.dx[i], boxes[i], false, adds_dx(spec, i));
        });
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
