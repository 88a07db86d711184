// The backend "eigen" apart from its ops: its options, and the units and tensors that it takes. Compiled once, for
// every processor, unlike the ops.

#include "backend.h"

#include <Eigen/src/Core/util/Macros.h>  // the version alone: nothing of Eigen may be instantiated here

#include <variant>

#include "lib/backends/common/algorithms.h"
#include "lib/backends/common/conv_transpose.h"
#include "lib/backends/common/lowering.h"
#include "lib/backends/common/unit_checks.h"
#include "lib/backends/eigen/runtime/instruction_set.h"
#include "lib/backends/eigen/runtime/peak.h"

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

/// Throws UsageError for the other name of im2col_gemm.
void check_names(const Spec& spec, const Choice& choice, const MixedPrecisionLowering& halves) {
  for (std::size_t pass = 0; holds<Conv>(spec.op) && pass < choice.algorithm.size(); ++pass)
    if (choice.algorithm[pass] == "implicit_gemm")
      throw UsageError(unit_text(spec, halves) + ", " + std::string(to_string(static_cast<Pass>(pass))) +
                       ": implicit_gemm and im2col_gemm are one algorithm here, since columns are packed from the "
                       "image and never written as a matrix; name it im2col_gemm");
}

/// The options, if their device is the host. Throws before a thread or a device is made.
const BackendOptions& on_the_host(const BackendOptions& options) {
  if (options.device != 0)
    throw UsageError("eigen: no device " + std::to_string(options.device) + "; device 0, the host, is the only one");
  return options;
}

/// The set that the options name, or the widest.
const InstructionSet& set_of(const BackendOptions& options) {
  return options.instruction_set.empty() ? widest_instruction_set() : instruction_set(options.instruction_set);
}

}  // namespace

std::int64_t EigenMixedPrecision::chunk_elements() const { return context_.pool.threads() * (std::int64_t{1} << 20); }

bool EigenMixedPrecision::takes_halves(const Spec& spec) const { return is_norm(spec.op) || holds<MaxPool>(spec.op); }

Lowered EigenMixedPrecision::lower(const Spec& spec, const Choice& choice) {
  return context_.set.lower(holds<MaxPool>(spec.op) ? spec : in_f32(spec), choice, context_);
}

EigenBackend::EigenBackend(const BackendOptions& options)
    : pool_(on_the_host(options).threads),
      context_{pool_, set_of(options), halves_},
      device_(pool_.threads(), options.memory_limit) {}

std::string EigenBackend::describe() {
  const int threads = pool_.threads();
  return "kernels of Lamina, Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) +
         "." + std::to_string(EIGEN_MINOR_VERSION) + " for im2col_eigen, lrn, softmax and losses, instruction set " +
         context_.set.name + ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

std::vector<std::string> EigenBackend::algorithms(const Spec& spec, Pass pass) const {
  if (holds<ConvTranspose>(spec.op)) return algorithms(mirrored(in_f32(spec)), mirrored(pass));
  if (has_table(spec.op)) return Chooser(context_.set.table(spec.op), spec, context_, context_.halves).names(pass);
  if (!holds<Input>(spec.op) && has_pass(spec.op, pass)) return {"direct"};
  return {};
}

bool EigenBackend::fuses(const Spec& spec, const Node& next, int) const {
  return joins(spec.op, spec.tail, spec.tail.size(), next.op, spec.mode);
}

Lowered EigenBackend::lower(const Spec& spec, const Choice& choice) {
  check_spec(spec, choice);
  check_names(spec, choice, halves_);
  if (has_table(spec.op))
    return Chooser<const Context>(context_.set.table(spec.op), spec, context_, halves_).lower(choice);
  const Lowered lowered =
      has_halves(spec) ? lower_on_copies(spec, choice, halves_) : context_.set.lower(spec, choice, context_);
  if (!holds<ConvTranspose>(spec.op)) check_direct("eigen", spec, choice, lowered);
  return lowered;
}

double EigenBackend::peak_flops_per_second(DType dtype) {
  return eigen::peak_flops_per_second(pool_, context_.set, dtype);
}

}  // namespace lamina::eigen
