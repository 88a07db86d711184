#pragma once
// Ops that the backends cuda, cuda-host and cudnn lower to the same kernels, and helpers for their lowering.

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/pointwise.h"
#include "kernels/types/stream.h"
#include "lamina/backend.h"
#include "lamina/error.h"
#include "lib/backends/common/lowering.h"
#include "lib/core/units/along.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// Where kernels are launched, and the backend's name for messages. `stream` is called at each launch.
struct Launcher {
  std::function<Stream()> stream;
  std::string backend;

  /// Calls work(stream, args...), which launches. Throws DeviceError for a launch that failed.
  template <class Work, class... Arguments>
  void launch(const Work& work, const Arguments&... args) const {
    try {
      work(stream(), args...);
    } catch (const LaunchError& error) {
      throw DeviceError(backend + ": " + error.what());
    }
  }
};

/// A tensor as kernels see it.
template <class T>
View<T> view(const Tensor& tensor) {
  return {tensor.as<T>(), tensor.shape.n, tensor.shape.c, tensor.shape.h, tensor.shape.w, tensor.pitch};
}

/// AxisCells as kernels see it.
inline CellsAlong cells_along(const AxisCells& of) { return {of.repeats, of.outer, of.cells, of.inner}; }

/// with_type() for the types of values in memory: also F16 and BF16.
template <class Function>
decltype(auto) with_storage(const std::string& backend, DType dtype, Function&& function) {
  if (dtype == DType::f16) return function.template operator()<F16>();
  if (dtype == DType::bf16) return function.template operator()<BF16>();
  return with_type(backend, dtype, std::forward<Function>(function));
}

/// The function of a step that launches kernels by function(stream, args...). It keeps a reference to `on`.
template <class Function>
auto launching(const Launcher& on, Function function) {
  return [&on, function = std::move(function)](const auto&... args) { on.launch(function, args...); };
}

/// Backward of an op with one gradient: calls function(stream, args, dx, adds) if dx is wanted. With `adds`, dx +=.
template <class Function>
auto to_dx(const Spec& spec, Function function) {
  return [function = std::move(function), adds = adds_dx(spec, 0)](Stream stream, const Args& args) {
    if (wanted(args, 0)) function(stream, args, args.dx[0], adds);
  };
}

/// A step that launches kernels by function(stream, args). It keeps a reference to `on`.
template <class Function>
Lowered::Step launches(const Launcher& on, std::vector<Pass> passes, std::string algorithm, Function function,
                       std::size_t workspace_bytes = 0) {
  return step(std::move(passes), std::move(algorithm), launching(on, std::move(function)), workspace_bytes);
}

/// Like with_steps(), with functions that launch kernels.
template <class Forward, class Backward, class... More>
Lowered with_launches(Lowered unit, const Spec& spec, const Launcher& on, const Forward& forward,
                      const Backward& backward, More&&... more) {
  return with_steps(std::move(unit), spec, launching(on, forward), launching(on, backward),
                    std::forward<More>(more)...);
}

/// A view for kernels that take elements in any order. A tensor of nhwc has no gaps: each of its images is a row.
template <class T>
View<T> elements(const Tensor& tensor) {
  View<T> row = view<T>(tensor);
  if (tensor.layout == Layout::nhwc) row.pitch = tensor.shape.image();
  return row;
}

/// A view in which each pixel of a tensor in nhwc is an image.
template <class T>
View<T> pixel_rows(const Tensor& tensor) {
  if (tensor.layout == Layout::nchw) return view<T>(tensor);
  const std::int64_t pixels = tensor.shape.n * tensor.shape.plane();
  if (pixels > std::numeric_limits<int>::max())
    throw LaunchError("a tensor in nhwc has " + std::to_string(pixels) + " pixels, more than 2^31 - 1; use nchw");
  return {tensor.as<T>(), static_cast<int>(pixels), tensor.shape.c, 1, 1, tensor.pitch};
}

/// The function of a ReLU or a Pointwise, `none` for another op. tail_function(): for the last op of a unit's tail.
PointwiseFunction function_of(const Op&);
PointwiseFunction tail_function(const Spec&);

/// Applies the function, if there is one, to y in place. For sums whose kernels do not apply it.
void apply(Stream, const std::optional<Pointwise>&, const Tensor& y);

// Each function is in the file of its op's name or kind: losses.cpp, moves.cpp, norms.cpp. The algorithm's name is
// "direct".
Lowered lower(const Relu&, const Spec&, const Launcher&);
Lowered lower(const Pointwise&, const Spec&, const Launcher&);
Lowered lower(const GroupNorm&, const Spec&, const Launcher&);
Lowered lower(const LayerNorm&, const Spec&, const Launcher&);
Lowered lower(const Binary&, const Spec&, const Launcher&);
Lowered lower(const ScaleShift&, const Spec&, const Launcher&);
Lowered lower(const PRelu&, const Spec&, const Launcher&);
Lowered lower(const Pad&, const Spec&, const Launcher&);
Lowered lower(const Resize&, const Spec&, const Launcher&);
Lowered lower(const Reorder&, const Spec&, const Launcher&);
Lowered lower(const Reduce&, const Spec&, const Launcher&);
Lowered lower(const Slice&, const Spec&, const Launcher&);
Lowered lower(const Concat&, const Spec&, const Launcher&);
Lowered lower(const SoftmaxCrossEntropy&, const Spec&, const Launcher&);
Lowered lower(const SigmoidCrossEntropy&, const Spec&, const Launcher&);
Lowered lower(const Embedding&, const Spec&, const Launcher&);
Lowered lower(const Dropout&, const Spec&, const Launcher&);

/// Whether kernels of this op take elements() in any order, so that nhwc without gaps needs no copies.
inline bool takes_any_order(const Op& op) { return holds<Relu, Pointwise, Add>(op); }

/// Whether this is an op of gpu_ops/ whose kernels read and write halves directly.
inline bool gpu_op_takes_halves(const Op& op) {
  return holds<Relu, Pointwise, Resize, Reorder, Reduce, Concat, Slice, GroupNorm, LayerNorm, Dropout>(op);
}

/// Lowers a unit whose op is one of gpu_ops/. Throws Unsupported for any other op.
Lowered lower_gpu_op(const Spec&, const Launcher&);

/// Largest number of elements in all widened values of a chunk: 16 MiB of f32, a part of a large GPU's L2 cache. The
/// cache also holds the halves and the kernels' other inputs.
constexpr std::int64_t gpu_chunk_elements = std::int64_t{1} << 22;

/// to = from or, with `adds`, to += from: only between equal layouts. The shapes are equal, pitches and layouts are
/// free. Each type is f32 or a half type. If both are half types, they are the same.
void convert(const Tensor& to, const Tensor& from, bool adds, const Launcher&);

// A bias of f32 for values of halves, one number per channel: y += bias, with `relu` y = max(y + bias, 0). Its
// gradient: db = the sum of dy, or db += the sum, in a workspace of bias_gradient_of_halves_bytes().
void add_bias_to_halves(const void* bias, const Tensor& y, bool relu, const Launcher&);
void bias_gradient_of_halves(const Tensor& dy, void* db, bool adds, void* workspace, const Launcher&);
std::size_t bias_gradient_of_halves_bytes(const Shape&, Layout);

// The work of Backend::update() and Backend::check_overflow().
void run_update(const Update&, const Launcher&);
void run_check_overflow(const UpdateTensors&, const Launcher&);

}  // namespace lamina::LAMINA_CUDA_SPACE
