#pragma once
// The backward pass of a recurrent op.
//
// Each thread has some images, and goes from the last step to the first. It adds the gates' gradients of the step
// after, times the recurrent weights, to dh, and makes the gradients of this step's gates in one pass over the rows.
// These are kept; for a run of steps dx is one product. Then the threads share the gates: the gradients of all weights
// are products over all rows of all steps.

#include <cstddef>

#include "forward.h"
#include "lib/backends/eigen/runtime/pool.h"
#include "lib/core/units/scratch_allocator.h"
#include "problem.h"
#include "weights.h"

namespace lamina::eigen {

template <class T>
class RecurrentBackward {
 public:
  RecurrentBackward(const RecurrentRows<T>& rows, const RecurrentProblem& problem, bool wants_dx)
      : rows_(rows), add_dx_(problem.add_dx), add_dw_(problem.add_dw), wants_dx_(wants_dx) {}

  std::size_t workspace_bytes() const;
  void run(const Args&, ThreadPool&) const;

 private:
  /// Rows of all parts, and the gradients of the weights with gates as rows, in whole vectors.
  struct Shared {
    RecurrentBackwardWeights<T> weights;
    T* dgates;
    T* h;
    T* x;
    T* dw_input;  // gradient of input weights; with ids a row of gates per id
    T* dw_recurrent;
    double* db;
  };
  struct StepBuffers {
    T* dh;  // rows of a chunk
    T* dcell;
    T* dx;      // rows of a chunk
    T* turned;  // dx of one image, before it is added
  };
  struct SumBuffers {
    T* dgates;  // transposed
    T* sums;
  };
  struct Share;
  Shared allocate_shared(ScratchAllocator&) const;
  StepBuffers allocate_steps(ScratchAllocator&) const;
  SumBuffers allocate_sums(ScratchAllocator&) const;
  std::size_t part_bytes() const;
  void run_steps(const Share&, const Args&) const;
  void read_dy(const Share&, const Tensor& dy, std::int64_t first, std::int64_t last) const;
  void write_dx(const Share&, const Tensor& dx, std::int64_t first, std::int64_t last) const;
  void sum_weights(const Shared&, const SumBuffers&, const Args&, IndexRange gates) const;
  void sum_block(const Shared&, const SumBuffers&, IndexRange gates, std::int64_t row, std::int64_t depth,
                 std::int64_t skipped, std::int64_t images, bool first) const;
  void sum_ids(const Shared&, const Args&, IndexRange gates) const;
  void write_weights(const Shared&, const Args&, IndexRange gates) const;

  RecurrentRows<T> rows_;
  bool add_dx_, add_dw_, wants_dx_;
};

}  // namespace lamina::eigen
