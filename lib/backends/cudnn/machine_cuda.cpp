// The GPU as the backend's machine: its stream, cuBLAS on it, our kernels for dropout, folding, sequences, losses,
// embeddings, and for conversions and biases of halves.

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "kernels/conv/conv_fold.h"
#include "kernels/dropout.h"
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

  void advance_dropout(std::uint64_t* next, std::uint64_t* now) override {
    on_.launch([&](Stream stream) { cuda::dropout_advance(stream, next, now); });
  }

  void apply_dropout(const Mask& mask, const std::uint64_t* step, const Tensor& from, const Tensor& to,
                     bool adds) override {
    if (from.dtype == DType::f64) return apply<double>(mask, step, from, to, adds);
    apply<float>(mask, step, from, to, adds);
  }

  void fold(const Fold& fold, void* w_to, void* bias_to) override {
    if (fold.dtype == DType::f64) return fold_of<double>(fold, w_to, bias_to);
    fold_of<float>(fold, w_to, bias_to);
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

  void to_rows(const Tensor& x, bool reverse, void* rows) override {
    cuda::with_type("cudnn", x.dtype, [&]<class T>() {
      on_.launch([&](Stream stream) {
        cuda::recurrent_to_rows<T>(stream, cuda::view<const T>(x), {reverse, true}, static_cast<T*>(rows));
      });
    });
  }

  void to_one_hot_rows(const Tensor& ids, bool reverse, int vocabulary, void* rows) override {
    cuda::with_type("cudnn", ids.dtype, [&]<class T>() {
      on_.launch([&](Stream stream) {
        cuda::recurrent_one_hot<T>(stream, cuda::view<const T>(ids), {reverse, true}, vocabulary,
                                   static_cast<T*>(rows));
      });
    });
  }

  void from_rows(const void* rows, bool reverse, const Tensor& x, bool adds) override {
    cuda::with_type("cudnn", x.dtype, [&]<class T>() {
      on_.launch([&](Stream stream) {
        cuda::recurrent_from_rows<T>(stream, static_cast<const T*>(rows), {reverse, true}, cuda::view<T>(x), adds);
      });
    });
  }

  Lowered lower_by_kernels(const Spec& spec) override { return cuda::lower_gpu_op(spec, on_); }

  double peak_flops_per_second(DType dtype) override { return cuda_peak_flops_per_second(device_, dtype); }

 private:
  const BlasLibrary& library(int cuda_major, const std::string& cudnn_directory) {
    if (!library_) library_ = open_blas(blas_beside(cudnn_directory, cuda_major), cuda_major);
    return *library_;
  }

  template <class T>
  void apply(const Mask& mask, const std::uint64_t* step, const Tensor& from, const Tensor& to, bool adds) {
    on_.launch([&](Stream stream) {
      cuda::dropout_apply<T>(stream, {mask.key, mask.threshold, mask.scale}, step, cuda::view<const T>(from),
                             cuda::view<T>(to), adds);
    });
  }

  template <class T>
  void fold_of(const Fold& f, void* w_to, void* bias_to) {
    const auto numbers = [](const void* data) { return static_cast<const T*>(data); };
    const cuda::FoldedNorm<T> norm{numbers(f.scale), numbers(f.shift), numbers(f.mean), numbers(f.variance), f.epsilon};
    on_.launch([&](Stream stream) {
      cuda::conv_fold<T>(stream, {norm, numbers(f.w), numbers(f.bias), f.filters, f.weights}, static_cast<T*>(w_to),
                         static_cast<T*>(bias_to));
    });
  }

  int number_;
  CudaDevice device_;
  cuda::Launcher on_{[this] { return device_.stream(); }, "cudnn"};
  std::optional<BlasLibrary> library_;
  std::string why_no_library_;  // error of the only attempt to describe it: each attempt searches many folders
  std::optional<Blas> blas_;
};

}  // namespace

std::unique_ptr<Machine> make_cuda_machine(const BackendOptions& options) {
  return std::make_unique<CudaMachine>(options);
}

}  // namespace lamina::cudnn
