// The backend "eigen" apart from its ops: its options, and the units and tensors that it takes. Unlike the ops, it is
// compiled once for all processors.

#include "backend.h"

#include <Eigen/src/Core/util/Macros.h>  // the version alone: nothing of Eigen may be instantiated here

#include "lib/backends/common/algorithms.h"
#include "lib/backends/common/conv_transpose.h"
#include "lib/backends/common/lowering.h"
#include "lib/backends/common/on_copies.h"
#include "lib/backends/common/unit_checks.h"
#include "lib/backends/eigen/runtime/common.h"
#include "lib/backends/eigen/runtime/instruction_set.h"
#include "lib/backends/eigen/runtime/peak.h"
#include "lib/core/device/host/host_device.h"

namespace lamina::eigen {
namespace {

/// default_fusion(), and a GlobalAveragePool after an embedding.
bool joins(const Op& op, const std::vector<Op>& tail, std::size_t count, const Op& next, Mode mode) {
  if (holds<GlobalAveragePool>(next)) return count == 0 && holds<Embedding>(op);
  return default_fusion(op, tail, count, next, mode);
}

void check_spec(const Spec& spec, const Choice& choice) {
  check_enumerators(spec, choice);
  check_types("eigen", spec);
  check_strict("eigen", choice);
  check_nchw("eigen", spec);
  check_tail("eigen", spec, joins);
}

/// Throws UsageError for implicit_gemm, which is another name of im2col_gemm.
void check_names(const Spec& spec, const Choice& choice, const MixedPrecisionLowering& halves) {
  for (std::size_t pass = 0; holds<Conv>(spec.op) && pass < choice.algorithm.size(); ++pass)
    if (choice.algorithm[pass] == "implicit_gemm")
      throw UsageError(unit_text(spec, halves) + ", " + std::string(to_string(static_cast<Pass>(pass))) +
                       ": implicit_gemm and im2col_gemm are one algorithm here, since columns are packed from the "
                       "image and never written as a matrix; name it im2col_gemm");
}

/// Returns the options. Throws UsageError if their device is not the host, before a thread or a device is made.
const BackendOptions& on_the_host(const BackendOptions& options) {
  if (options.device != 0)
    throw UsageError("eigen: no device " + std::to_string(options.device) + "; device 0, the host, is the only one");
  return options;
}

/// The set that the options name, or the widest.
const InstructionSet& set_of(const BackendOptions& options) {
  return options.instruction_set.empty() ? widest_instruction_set() : instruction_set(options.instruction_set);
}

class EigenBackend final : public Backend, MixedPrecisionLowering {
 public:
  explicit EigenBackend(const BackendOptions& options)
      : pool_(on_the_host(options).threads),
        context_{pool_, set_of(options), *this},
        device_(pool_.threads(), options.memory_limit) {}

  std::string_view name() const override { return "eigen"; }
  std::string available() const override { return {}; }
  /// "kernels of Lamina, Eigen 3.4.0 for im2col_eigen, lrn, softmax and losses, instruction set x86-64-v4, 2 threads"
  std::string describe() override {
    const int threads = pool_.threads();
    return "kernels of Lamina, Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." +
           std::to_string(EIGEN_MAJOR_VERSION) + "." + std::to_string(EIGEN_MINOR_VERSION) +
           " for im2col_eigen, lrn, softmax and losses, instruction set " + context_.set.name + ", " +
           std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  }
  Device& device() override { return device_; }

  std::vector<std::string> algorithms(const Spec& spec, Pass pass) const override {
    if (holds<ConvTranspose>(spec.op)) return algorithms(mirrored(in_f32(spec)), mirrored(pass));
    if (has_table(spec.op)) return chooser(spec).names(pass);
    if (!holds<Input>(spec.op) && has_pass(spec.op, pass)) return {"direct"};
    return {};
  }

  bool fuses(const Spec& spec, const Node& next, int) const override {
    return joins(spec.op, spec.tail, spec.tail.size(), next.op, spec.mode);
  }
  bool takes_pitch(const Spec&) const override { return true; }

  Lowered lower(const Spec& spec, const Choice& choice) override {
    check_spec(spec, choice);
    check_names(spec, choice, *this);
    if (has_table(spec.op)) return chooser(spec).lower(choice);
    Lowered lowered =
        has_halves(spec) ? lower_on_copies(spec, choice, *this) : context_.set.lower(spec, choice, context_);
    if (!holds<ConvTranspose>(spec.op)) check_direct("eigen", spec, choice, lowered);
    return lowered;
  }

  double peak_flops_per_second(DType dtype) override {
    return eigen::peak_flops_per_second(pool_, context_.set, dtype);
  }
  void update(const Update& update) override { context_.set.update(update, pool_); }
  void check_overflow(const UpdateTensors& all) override { context_.set.check_overflow(all, pool_); }

 private:
  Chooser<const Context> chooser(const Spec& spec) const {
    return {holds<Conv>(spec.op) ? context_.set.conv : context_.set.connected, spec, context_, *this};
  }

  std::string_view backend() const override { return "eigen"; }
  std::int64_t chunk_elements() const override { return context_.pool.threads() * (std::int64_t{1} << 20); }
  bool takes_halves(const Spec& spec) const override { return is_norm(spec.op) || holds<MaxPool>(spec.op); }
  Lowered lower_directly(const Spec& spec, const Choice& choice) const override {
    return context_.set.lower(holds<MaxPool>(spec.op) ? spec : in_f32(spec), choice, context_);
  }
  void convert(const Tensor& to, const Tensor& from) const override { context_.set.convert(to, from, context_.pool); }

  ThreadPool pool_;
  Context context_;
  HostDevice device_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(const BackendOptions& options) { return std::make_unique<EigenBackend>(options); }

}  // namespace lamina::eigen
