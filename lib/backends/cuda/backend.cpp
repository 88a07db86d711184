// Checks which units and tensors the backend takes, before it calls an op's file.

#include "backend.h"

#include <variant>

#include "common.h"
#include "kernels/add.h"
#include "lib/backends/common/conv_transpose.h"
#include "lib/backends/common/lowering.h"
#include "lib/backends/common/unit_checks.h"
#include "lib/core/text/one_of.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

void check_spec(const std::string& self, const Spec& spec, const Choice& choice) {
  check_enumerators(spec, choice);
  check_types(self, spec);
  check_strict(self, choice);
  if (spec.y.dtype == DType::f64)
    check_nchw(self, spec);
  else
    check_one_layout(self, spec);
  check_tail(self, spec, default_fusion);
}

class CudaBackend final : public Backend, MixedPrecisionLowering {
 public:
  explicit CudaBackend(const BackendOptions& options) : machine_(options) {}

  std::string_view name() const override { return machine_.backend; }
  std::string available() const override { return machine_.unavailable(); }
  std::string describe() override { return machine_.describe(); }
  Device& device() override { return machine_.device(); }
  bool takes_pitch(const Spec& spec) const override {
    return spec.y.layout == Layout::nchw || !takes_any_order(spec.op);
  }

  std::vector<std::string> algorithms(const Spec& spec, Pass pass) const override {
    if (holds<ConvTranspose>(spec.op)) return algorithms(mirrored(in_f32(spec)), mirrored(pass));
    if (has_table(spec.op)) return chooser(spec).names(pass);
    if (holds<Input>(spec.op) || !has_pass(spec.op, pass)) return {};
    if (const auto* const op = std::get_if<Recurrent>(&spec.op)) return recurrent_algorithms(*op);
    return {"direct"};
  }

  bool fuses(const Spec& spec, const Node& next, int) const override {
    return default_fusion(spec.op, spec.tail, spec.tail.size(), next.op, spec.mode);
  }

  Lowered lower(const Spec& spec, const Choice& choice) override {
    check_spec(machine_.backend, spec, choice);
    if (has_table(spec.op)) return with_blas(chooser(spec).lower(choice), spec);
    const bool copies = has_halves(spec) || spec.y.layout == Layout::nhwc;
    Lowered lowered = copies ? lower_on_copies(spec, choice, *this) : lower_directly(spec, choice);
    if (!holds<ConvTranspose, Recurrent>(spec.op)) check_direct(machine_.backend, spec, choice, lowered);
    return lowered;
  }

  void update(const Update& update) override { run_update(update, machine_); }
  void check_overflow(const UpdateTensors& all) override { run_check_overflow(all, machine_); }
  double peak_flops_per_second(DType dtype) override { return machine_.peak_flops_per_second(dtype); }

 private:
  std::string_view backend() const override { return machine_.backend; }
  std::int64_t chunk_elements() const override { return gpu_chunk_elements; }
  bool takes_halves(const Spec& spec) const override {
    if (holds<Add>(spec.op)) return spec.x.size() <= most_addends;  // kernels sum more in y, which would round
    return gpu_op_takes_halves(spec.op) || holds<MaxPool, AveragePool, GlobalAveragePool, BatchNorm, Lrn>(spec.op);
  }
  bool takes_nhwc(const Spec& spec) const override { return takes_any_order(spec.op); }
  Lowered lower_directly(const Spec& spec, const Choice& choice) const override {
    return std::visit(
        [&]<class T>(const T& op) -> Lowered {
          if constexpr (OneOf<T, Input, Conv, FullyConnected>)
            throw UsageError(std::string(backend()) + ": " + to_string(spec.op) + " has no kernels");
          else if constexpr (std::is_same_v<T, ConvTranspose>)
            return LAMINA_CUDA_SPACE::lower(op, spec, choice, machine_, [&](const Spec& of, const Choice& its) {
              return with_blas(chooser(of).lower(its), of);
            });
          else
            return LAMINA_CUDA_SPACE::lower(op, spec, choice, machine_);
        },
        spec.op);
  }
  void convert(const Tensor& to, const Tensor& from) const override {
    LAMINA_CUDA_SPACE::convert(to, from, false, machine_);
  }

  Chooser<Machine> chooser(const Spec& spec) const {
    return {holds<Conv>(spec.op) ? conv_table : connected_table, spec, machine_, *this};
  }

  /// Opens cuBLAS if a step of the unit needs it. Returns the unit.
  Lowered with_blas(Lowered unit, const Spec& spec) const {
    for (const Lowered::Step& step : unit.steps)
      if (step.algorithm == im2col_gemm_name || step.algorithm == cublas_name)
        machine_.make_blas(conv_unit(spec).dtype);
    return unit;
  }

  mutable Machine machine_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(const BackendOptions& options) { return std::make_unique<CudaBackend>(options); }

}  // namespace lamina::LAMINA_CUDA_SPACE
