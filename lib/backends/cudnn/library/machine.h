#pragma once
// Services of the machine besides cuDNN: a device with a stream, matrix products, the fold of a batch norm, sequences
// as rows, ops that cuDNN lacks.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "lamina/backend.h"
#include "types.h"

namespace lamina {
class Blas;
}

namespace lamina::cudnn {

/// A batch norm, with its running statistics, to be folded into filter and bias of the convolution before it. All
/// numbers have one type. kernels/conv/conv_fold.h has the formula. A null bias is zero.
struct Fold {
  DType dtype;
  const void *w, *bias, *scale, *shift, *mean, *variance;
  double epsilon;
  int filters;
  std::int64_t weights;  ///< weights of a filter, contiguous
};

/// Opens its device at the first use. Outlives every kernel.
class Machine {
 public:
  virtual ~Machine() = default;
  virtual std::string unavailable() const = 0;  ///< empty, or why the device is not available
  virtual Device& device() = 0;
  virtual Stream stream() = 0;
  /// The cuBLAS of the CUDA version that cuDNN was built for, bound to the stream. Prefers a cuBLAS beside cuDNN's
  /// directory. Throws LoadError if no cuBLAS is found.
  virtual Blas& blas(int cuda_major, const std::string& cudnn_directory) = 0;
  /// The version of cuBLAS, "cuBLAS 13.1.0", or one line that says why there is no cuBLAS. Touches no device.
  virtual std::string describe_blas(int cuda_major, const std::string& cudnn_directory) = 0;

  /// Copies bytes within the device. Enqueues.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;

  /// to = from, or to += from, for tensors of one shape and any pitches: 16 bits to f32, or f32 to 16 bits, rounded to
  /// nearest with ties to even. Enqueues.
  virtual void convert(const Tensor& to, const Tensor& from, bool adds) = 0;
  /// y += bias or, with `relu`, y = max(y + bias, 0). y has 16 bits; bias is an f32 per channel. Enqueues.
  virtual void add_bias(const void* bias, const Tensor& y, bool relu) = 0;
  /// Applies a function to y, in place. Enqueues.
  virtual void apply_function(const Pointwise&, const Tensor& y) = 0;
  /// db = the sum of dy over images and pixels, or db += the sum. dy has 16 bits, db f32. Enqueues. `workspace` has
  /// bias_gradient_bytes() of dy.
  virtual void bias_gradient(const Tensor& dy, void* db, bool adds, void* workspace) = 0;
  virtual std::size_t bias_gradient_bytes(const Shape&, Layout) = 0;

  /// Writes the folded filter and bias. Enqueues.
  virtual void fold(const Fold&, void* w_to, void* bias_to) = 0;

  /// Enqueue the work of Backend::update() and Backend::check_overflow().
  virtual void update(const Update&) = 0;
  virtual void check_overflow(const UpdateTensors&) = 0;

  /// Copies a sequence {n, features, steps, 1} to dense rows of features, ordered by step, then image. With `reverse`
  /// the last step comes first. With a vocabulary x has ids {n, 1, steps, 1}; a row is 1 at its id and 0 elsewhere, NaN
  /// for an invalid id. Enqueues.
  virtual void to_rows(const Tensor& x, bool reverse, int vocabulary, void* rows) = 0;
  /// The inverse of to_rows(), without a vocabulary: x = rows, or x += rows. Enqueues.
  virtual void from_rows(const void* rows, bool reverse, const Tensor& x, bool adds) = 0;

  /// Lowers the unit of an OpOfOurKernels (library/common.h) to the kernels of the backend cuda.
  virtual Lowered lower_by_kernels(const Spec&) = 0;

  /// The result of Backend::peak_flops_per_second. Default: 0.
  virtual double peak_flops_per_second(DType) { return 0; }
};

/// The GPU with the number options.device. Throws Unsupported in a build without CUDA; the message says how to get a
/// build with CUDA.
std::unique_ptr<Machine> make_cuda_machine(const BackendOptions&);

}  // namespace lamina::cudnn
