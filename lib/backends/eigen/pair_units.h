#pragma once
// Convolutions and fully connected ops in bf16 by products of pairs, the algorithm bf16_gemm.

#include "lib/backends/eigen/runtime/common.h"
#include "lib/backends/half/half.h"

namespace lamina::eigen {

constexpr const char* bf16_gemm_name = "bf16_gemm";

class PairUnits {
 public:
  /// Both outlive the kernels. `context` is that of the backend, `halves` lowers what has no products of pairs.
  PairUnits(const Context& context, HalfUnits& halves);
  PairUnits(const PairUnits&) = delete;

  /// Whether bf16_gemm is an algorithm of the unit here.
  bool takes(const Spec&) const;

  /// Lowers a unit with halves. By rule bf16_gemm replaces other products, but not Winograd's algorithms, where the
  /// instruction set has products of pairs. Nothing is timed: every process and rank takes the same.
  Lowered lower(const Spec&, const Choice&);

 private:
  Lowered::Step step(const Spec&, Pass);
  bool is_better(const Spec&, Pass, const Lowered::Step& than) const;

  const Context& context_;
  HalfUnits& halves_;
  MicroKernels<float> products_;
  InstructionSet set_;  // that of the backend, with these for its products of f32
  Context on_pairs_;
};

}  // namespace lamina::eigen
