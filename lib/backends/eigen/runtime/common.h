#pragma once
// Shared by the files of this backend: the thread pool, dispatch on element types, the ops.

#include <utility>
#include <vector>

#include "instruction_set.h"
#include "lamina/backend.h"
#include "lib/backends/common/algorithms.h"
#include "lib/backends/common/lowering.h"
#include "pool.h"

namespace lamina::eigen {

/// The parts of a backend that lowering needs. Outlives every kernel.
struct Context {
  ThreadPool& pool;
  const InstructionSet& set;
  const MixedPrecisionLowering& halves;  ///< lowering of units on copies, if kernels do not take their halves
};

/// with_type() of this backend.
template <class Function>
decltype(auto) with_type(DType dtype, Function&& function) {
  return lamina::with_type("eigen", dtype, std::forward<Function>(function));
}

/// A step that calls work.run(args, pool), in a workspace of work.workspace_bytes().
template <class Work>
Lowered::Step work_step(std::vector<Pass> passes, const char* algorithm, Work work, ThreadPool& pool) {
  const std::size_t bytes = work.workspace_bytes();
  return step(
      std::move(passes), algorithm, [&pool, work = std::move(work)](const Args& args) { work.run(args, pool); }, bytes);
}

// One function per op, in the file of the op's name or kind: pointwise.cpp, moves.cpp. `spec.op` holds the op; the
// algorithm's name is "direct" if there is only one. Each function fills every vector of Lowered with one entry per x,
// and adds steps for the passes of spec.mode only.
Lowered lower(const ConvTranspose&, const Spec&, const Choice&, const Context&);
Lowered lower(const MaxPool&, const Spec&, const Choice&, const Context&);
Lowered lower(const AveragePool&, const Spec&, const Choice&, const Context&);
Lowered lower(const GlobalAveragePool&, const Spec&, const Choice&, const Context&);
Lowered lower(const BatchNorm&, const Spec&, const Choice&, const Context&);
Lowered lower(const GroupNorm&, const Spec&, const Choice&, const Context&);
Lowered lower(const LayerNorm&, const Spec&, const Choice&, const Context&);
Lowered lower(const Lrn&, const Spec&, const Choice&, const Context&);
Lowered lower(const Relu&, const Spec&, const Choice&, const Context&);
Lowered lower(const Dropout&, const Spec&, const Choice&, const Context&);
Lowered lower(const Softmax&, const Spec&, const Choice&, const Context&);
Lowered lower(const Pointwise&, const Spec&, const Choice&, const Context&);
Lowered lower(const SoftmaxCrossEntropy&, const Spec&, const Choice&, const Context&);
Lowered lower(const SigmoidCrossEntropy&, const Spec&, const Choice&, const Context&);
Lowered lower(const Embedding&, const Spec&, const Choice&, const Context&);
Lowered lower(const Recurrent&, const Spec&, const Choice&, const Context&);
Lowered lower(const Add&, const Spec&, const Choice&, const Context&);
Lowered lower(const Binary&, const Spec&, const Choice&, const Context&);
Lowered lower(const ScaleShift&, const Spec&, const Choice&, const Context&);
Lowered lower(const PRelu&, const Spec&, const Choice&, const Context&);
Lowered lower(const Pad&, const Spec&, const Choice&, const Context&);
Lowered lower(const Resize&, const Spec&, const Choice&, const Context&);
Lowered lower(const Reorder&, const Spec&, const Choice&, const Context&);
Lowered lower(const Reduce&, const Spec&, const Choice&, const Context&);
Lowered lower(const Concat&, const Spec&, const Choice&, const Context&);
Lowered lower(const Slice&, const Spec&, const Choice&, const Context&);

// The work of Backend::update() and Backend::check_overflow(), in update.cpp.
void update(const Update&, ThreadPool&);
void check_overflow(const UpdateTensors&, ThreadPool&);

// The tables of the ops with several algorithms.
extern const AlgorithmTable<const Context> conv_table, connected_table;

}  // namespace lamina::eigen
