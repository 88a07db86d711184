// The backend's machine, implemented on the host.

#include "tests/cudnn/fakes/host_machine.h"

#include <cstring>
#include <optional>

#include "lamina/error.h"
#if defined(LAMINA_CUDA_ON_HOST)
#include "lib/backends/gpu_ops/gpu_ops.h"
#endif

namespace lamina::test {
namespace {

MachineLog* counting = nullptr;

/// A table of BLAS functions that compute on the host and record their names.
BlasTable counted_blas() {
  BlasTable table = host_blas();
#define LAMINA_TEST_COUNTED(entry)                                                       \
  table.entry = [](auto... p) {                                                          \
    counting->calls.emplace_back(#entry);                                                \
    return counting->blas_status != 0 ? counting->blas_status : host_blas().entry(p...); \
  };
  LAMINA_TEST_COUNTED(cublasSetWorkspace_v2)
  LAMINA_TEST_COUNTED(cublasSetMathMode)
  LAMINA_TEST_COUNTED(cublasSgemm_v2)
  LAMINA_TEST_COUNTED(cublasGemmEx)
  return table;
}

class HostMachine final : public cudnn::Machine {
 public:
  explicit HostMachine(MachineLog& log) : log_(log) {}
  std::string unavailable() const override { return log_.unavailable; }
  Device& device() override { return log_.device; }
  cudnn::Stream stream() override { return nullptr; }
  Blas& blas(int cuda_major, const std::string&) override {
    log_.cuda_major = cuda_major;
    counting = &log_;
    if (!blas_) blas_.emplace(table_, nullptr);
    return *blas_;
  }
  std::string describe_blas(int cuda_major, const std::string&) override {
    return "cuBLAS " + std::to_string(cuda_major) + " of the host";
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    log_.calls.push_back("copy " + std::to_string(bytes) + " bytes");
    std::memcpy(to, from, bytes);
  }
  // Without the kernels for the host, the next functions, up to bias_gradient, only record their calls.
  void convert(const Tensor& to, const Tensor& from, bool adds) override {
    log_.calls.push_back("convert " + std::string(to_string(from.dtype)) + " to " + std::string(to_string(to.dtype)) +
                         (adds ? ", adds" : ""));
#if defined(LAMINA_CUDA_ON_HOST)
    cuda_host::convert(to, from, adds, on_);
#endif
  }
  void add_bias([[maybe_unused]] const void* bias, const Tensor& y, bool relu) override {
    log_.calls.push_back("add bias to " + std::string(to_string(y.dtype)) + (relu ? ", ReLU" : ""));
#if defined(LAMINA_CUDA_ON_HOST)
    cuda_host::add_bias_to_halves(bias, y, relu, on_);
#endif
  }
  void apply_function(const Pointwise& function, [[maybe_unused]] const Tensor& y) override {
    log_.calls.push_back(std::string(op_name(function)) + " in place");
#if defined(LAMINA_CUDA_ON_HOST)
    on_.launch([&](cuda_host::Stream stream) { cuda_host::apply(stream, function, y); });
#endif
  }
  void bias_gradient(const Tensor& dy, [[maybe_unused]] void* db, bool adds,
                     [[maybe_unused]] void* workspace) override {
    log_.calls.push_back("bias gradient of " + std::string(to_string(dy.dtype)) + (adds ? ", adds" : ""));
#if defined(LAMINA_CUDA_ON_HOST)
    cuda_host::bias_gradient_of_halves(dy, db, adds, workspace, on_);
#endif
  }
  std::size_t bias_gradient_bytes([[maybe_unused]] const Shape& shape, [[maybe_unused]] Layout layout) override {
#if defined(LAMINA_CUDA_ON_HOST)
    return cuda_host::bias_gradient_of_halves_bytes(shape, layout);
#else
    return 0;
#endif
  }
  void fold(const cudnn::Fold& fold, void* w_to, void* bias_to) override {
    log_.folds.push_back({fold, w_to, bias_to});
  }
  void update(const Update& update) override { log_.updates.push_back(update); }
  void check_overflow(const UpdateTensors&) override { log_.calls.emplace_back("check overflow"); }
  void to_rows(const Tensor&, bool reverse, int vocabulary, void*) override {
    log_.calls.push_back((vocabulary == 0 ? "to rows" : "to one-hot rows of " + std::to_string(vocabulary)) +
                         (reverse ? " in reverse" : ""));
  }
  void from_rows(const void*, bool reverse, const Tensor&, bool adds) override {
    log_.calls.push_back(std::string(reverse ? "from rows in reverse" : "from rows") + (adds ? ", adds" : ""));
  }
  Lowered lower_by_kernels(const Spec& spec) override {
#if defined(LAMINA_CUDA_ON_HOST)
    return cuda_host::lower_gpu_op(spec, on_);
#else
    throw Unsupported("cudnn: " + to_string(spec.op) + " needs the kernels for the host; this build lacks them");
#endif
  }
  double peak_flops_per_second(DType dtype) override {
    return dtype == DType::f64 ? log_.peak_flops_per_second / 2 : log_.peak_flops_per_second;
  }

 private:
#if defined(LAMINA_CUDA_ON_HOST)
  cuda_host::Launcher on_{[] { return nullptr; }, "cudnn"};
#endif
  MachineLog& log_;
  BlasTable table_ = counted_blas();
  std::optional<Blas> blas_;
};

}  // namespace

std::unique_ptr<cudnn::Machine> make_host_machine(MachineLog& log) { return std::make_unique<HostMachine>(log); }

}  // namespace lamina::test
