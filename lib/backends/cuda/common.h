#pragma once
// Shared by the files of this backend: the ops, and names of algorithms.

#include <string>
#include <vector>

#include "lamina/backend.h"
#include "lib/backends/common/algorithms.h"
#include "lib/backends/common/lowering.h"
#include "lib/backends/gpu_ops/gpu_ops.h"
#include "machine.h"

namespace lamina::LAMINA_CUDA_SPACE {

// The names of the algorithms whose products run on Machine::blas().
constexpr const char *im2col_gemm_name = "im2col_gemm", *cublas_name = "cublas";

// One function per op, in the op's file. `spec.op` holds the op; the algorithm's name is "direct" if there is only one.
// Each function fills every vector of Lowered with one entry per x, and adds steps for the passes of spec.mode only.
Lowered lower(const ConvTranspose&, const Spec&, const Choice&, Machine&,
              const std::function<Lowered(const Spec&, const Choice&)>& lower_mirrored);
Lowered lower(const MaxPool&, const Spec&, const Choice&, Machine&);
Lowered lower(const AveragePool&, const Spec&, const Choice&, Machine&);
Lowered lower(const GlobalAveragePool&, const Spec&, const Choice&, Machine&);
Lowered lower(const BatchNorm&, const Spec&, const Choice&, Machine&);
Lowered lower(const Lrn&, const Spec&, const Choice&, Machine&);
Lowered lower(const Softmax&, const Spec&, const Choice&, Machine&);
Lowered lower(const Recurrent&, const Spec&, const Choice&, Machine&);
Lowered lower(const Add&, const Spec&, const Choice&, Machine&);

/// Lowers an op of gpu_ops/.
template <class Op>
auto lower(const Op& op, const Spec& spec, const Choice&, Machine& machine) -> decltype(lower(op, spec, machine)) {
  return lower(op, spec, machine);
}

std::vector<std::string> recurrent_algorithms(const Recurrent&);

// The tables of algorithms. Recurrent has several algorithms without a table.
extern const AlgorithmTable<Machine> conv_table, connected_table;

}  // namespace lamina::LAMINA_CUDA_SPACE
