#pragma once
// Services of the machine besides cuDNN: a device with a stream, matrix products, the fold of a batch norm,
// sequences as rows, ops that cuDNN lacks.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "lamina/backend.h"
#include "lib/backends/cudnn/library/types.h"

namespace lamina {
class Blas;
}

namespace lamina::cudnn {

/// The fold of a batch norm, by its running statistics, into filter and bias of the convolution before it. All have one
/// type. kernels/conv/conv_fold.h has the formula. A null bias is zero.
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
  /// cuBLAS of the CUDA that cuDNN was built for, bound to the stream; preferably from beside cuDNN's directory. Throws
  /// LoadError if no cuBLAS is found.
  virtual Blas& blas(int cuda_major, const std::string& cudnn_directory) = 0;
  /// The version of blas() as "cuBLAS 13.1.0", or in one line why there is none. Touches no device.
  virtual std::string describe_blas(int cuda_major, const std::string& cudnn_directory) = 0;

  /// Copies bytes within the device. Enqueues.
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;

  /// to = from, or to += from, of one shape and any pitches: values of 16 bits to f32, or f32 to 16 bits, rounded to
  /// nearest with ties to even. Enqueues.
  virtual void convert(const Tensor& to, const Tensor& from, bool adds) = 0;
  /// y += bias, with `relu` y = max(y + bias, 0): y of 16 bits, bias of f32 for each channel. Enqueues.
  virtual void add_bias(const void* bias, const Tensor& y, bool relu) = 0;
  /// y = the function of y, in place. Enqueues.
  virtual void apply_function(const Pointwise&, const Tensor& y) = 0;
  /// db = the sum of dy over images and pixels, or db += the sum: dy of 16 bits, db of f32. Enqueues. `workspace` has
  /// bias_gradient_bytes() of y.
  virtual void bias_gradient(const Tensor& dy, void* db, bool adds, void* workspace) = 0;
  virtual std::size_t bias_gradient_bytes(const Shape&, Layout) = 0;

  /// Writes the folded filter and bias. Enqueues.
  virtual void fold(const Fold&, void* w_to, void* bias_to) = 0;

  /// Enqueue the work of Backend::update() and Backend::check_overflow().
  virtual void update(const Update&) = 0;
  virtual void check_overflow(const UpdateTensors&) = 0;

  /// Copies a sequence {n, features, steps, 1} to dense rows of features, by steps, then images; in reverse the last
  /// step comes first. With a vocabulary x has ids {n, 1, steps, 1}, and the rows have 1 at the id, 0 elsewhere, NaN
  /// for an invalid id. Enqueues.
  virtual void to_rows(const Tensor& x, bool reverse, int vocabulary, void* rows) = 0;
  /// The inverse of to_rows(), without a vocabulary: x = rows, or x += rows. Enqueues.
  virtual void from_rows(const void* rows, bool reverse, const Tensor& x, bool adds) = 0;

  /// Lowers the unit of an OpOfOurKernels (library/common.h) to the kernels of the backend cuda.
  virtual Lowered lower_by_kernels(const Spec&) = 0;

  /// The result of Backend::peak_flops_per_second. Default: 0.
  virtual double peak_flops_per_second(DType) { return 0; }
};

/// The GPU with the number options.device. Throws Unsupported in a build without CUDA; the message says how to get one
/// with it.
std::unique_ptr<Machine> make_cuda_machine(const BackendOptions&);

}  // namespace lamina::cudnn
