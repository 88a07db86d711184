// The GPU as the backend's machine: its stream, cuBLAS on it, our kernels for folding, sequences, conversions and
// biases of halves, and the ops that cuDNN lacks.

#include <filesystem>
#include <optional>
#include <string>

#include "kernels/conv/conv_fold.h"
#include "kernels/recurrent/recurrent.h"
#include "lamina/error.h"
#include "lib/backends/gpu_ops/gpu_ops.h"
#include "lib/core/device/blas/blas.h"
#include "lib/core/device/cuda/cuda_device.h"
#include "machine.h"

namespace lamina::cudnn {
namespace {

/// The folder of cuBLAS in the tree of NVIDIA's Python wheels, if cuDNN is in nvidia/cudnn/lib; else empty.
std::string blas_beside(const std::string& cudnn_directory, int cuda_major) {
  namespace fs = std::filesystem;
  const fs::path wheels = fs::path(cudnn_directory).parent_path().parent_path();
  std::error_code ignored;
  for (const fs::path& folder : {wheels / "cublas" / "lib", wheels / ("cu" + std::to_string(cuda_major)) / "lib"})
    if (fs::exists(folder / ("libcublas.so." + std::to_string(cuda_major)), ignored)) return folder.string();
  return {};
}

class CudaMachine final : public Machine {
 public:
  explicit CudaMachine(const BackendOptions& options)
      : number_(options.device), device_(options.device, options.memory_limit) {}

  std::string unavailable() const override { return cuda_unavailable(number_); }
  Device& device() override { return device_; }
  Stream stream() override { return device_.stream(); }

  Blas& blas(int cuda_major, const std::string& cudnn_directory) override {
    if (!blas_) blas_.emplace(library(cuda_major, cudnn_directory).table, device_.stream());
    return *blas_;
  }

  std::string describe_blas(int cuda_major, const std::string& cudnn_directory) override {
    if (!library_ && why_no_library_.empty()) {
      try {
        library(cuda_major, cudnn_directory);
      } catch (const LoadError& error) {
        why_no_library_ = error.what();
      }
    }
    if (library_) return library_->description();
    return "without cuBLAS: " + why_no_library_.substr(0, why_no_library_.find('\n'));
  }

  void copy(void* to, const void* from, std::size_t bytes) override { device_.copy(to, from, bytes); }

  void fold(const Fold& f, void* w_to, void* bias_to) override {
    launch_in(f.dtype, [&]<class T>(Stream stream) {
      const auto numbers = [](const void* data) { return static_cast<const T*>(data); };
      const cuda::FoldedNorm<T> norm{numbers(f.scale), numbers(f.shift), numbers(f.mean), numbers(f.variance),
                                     f.epsilon};
      cuda::conv_fold<T>(stream, {norm, numbers(f.w), numbers(f.bias), f.filters, f.weights}, static_cast<T*>(w_to),
                         static_cast<T*>(bias_to));
    });
  }

  void convert(const Tensor& to, const Tensor& from, bool adds) override { cuda::convert(to, from, adds, on_); }
  void add_bias(const void* bias, const Tensor& y, bool relu) override { cuda::add_bias_to_halves(bias, y, relu, on_); }
  void apply_function(const Pointwise& function, const Tensor& y) override {
    on_.launch([&](Stream stream) { cuda::apply(stream, function, y); });
  }
  void bias_gradient(const Tensor& dy, void* db, bool adds, void* workspace) override {
    cuda::bias_gradient_of_halves(dy, db, adds, workspace, on_);
  }
  std::size_t bias_gradient_bytes(const Shape& shape, Layout layout) override {
    return cuda::bias_gradient_of_halves_bytes(shape, layout);
  }

  void update(const Update& update) override { cuda::run_update(update, on_); }
  void check_overflow(const UpdateTensors& all) override { cuda::run_check_overflow(all, on_); }

  void to_rows(const Tensor& x, bool reverse, int vocabulary, void* rows) override {
    launch_in(x.dtype, [&]<class T>(Stream stream) {
      const auto from = cuda::view<const T>(x);
      auto* const to = static_cast<T*>(rows);
      if (vocabulary == 0) return cuda::recurrent_to_rows<T>(stream, from, {reverse, true}, to);
      cuda::recurrent_one_hot<T>(stream, from, {reverse, true}, vocabulary, to);
    });
  }

  void from_rows(const void* rows, bool reverse, const Tensor& x, bool adds) override {
    launch_in(x.dtype, [&]<class T>(Stream stream) {
      cuda::recurrent_from_rows<T>(stream, static_cast<const T*>(rows), {reverse, true}, cuda::view<T>(x), adds);
    });
  }

  Lowered lower_by_kernels(const Spec& spec) override { return cuda::lower_gpu_op(spec, on_); }

  double peak_flops_per_second(DType dtype) override { return cuda_peak_flops_per_second(device_, dtype); }

 private:
  const BlasLibrary& library(int cuda_major, const std::string& cudnn_directory) {
    if (!library_) library_ = open_blas(blas_beside(cudnn_directory, cuda_major), cuda_major);
    return *library_;
  }

  /// Calls launch.template operator()<T>(stream), which launches kernels of the type.
  template <class Launch>
  void launch_in(DType dtype, const Launch& launch) {
    with_type("cudnn", dtype,
              [&]<class T>() { on_.launch([&](Stream stream) { launch.template operator()<T>(stream); }); });
  }

  int number_;
  CudaDevice device_;
  cuda::Launcher on_{[this] { return device_.stream(); }, "cudnn"};
  std::optional<BlasLibrary> library_;
  std::string why_no_library_;  // error of describe_blas(), which tries once: an attempt searches many folders
  std::optional<Blas> blas_;
};

}  // namespace

std::unique_ptr<Machine> make_cuda_machine(const BackendOptions& options) {
  return std::make_unique<CudaMachine>(options);
}

}  // namespace lamina::cudnn
