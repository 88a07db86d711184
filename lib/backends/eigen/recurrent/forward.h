#pragma once
// The forward pass of a recurrent op.
//
// Each thread has some images, and no step waits for another thread. For a run of steps it transposes x into rows and
// multiplies them all by the input weights. Then for each step it adds the product of h with the recurrent weights, and
// makes gates, cell and h from the sums in one pass over the rows.

#include <cstddef>

#include "lib/backends/eigen/runtime/pool.h"
#include "lib/core/units/scratch_allocator.h"
#include "problem.h"
#include "weights.h"

namespace lamina::eigen {

/// Rows of gates and of cells that forward keeps for backward, part by part.
template <class T>
struct RecurrentSaved {
  T* gates;
  T* cells;
  static RecurrentSaved allocate(const RecurrentRows<T>& rows, ScratchAllocator& scratch) {
    return {scratch.take<T>(rows.rows() * rows.gates()), scratch.take<T>(rows.rows() * rows.width)};
  }
};

/// Copies some images of x to rows, for `count` steps in the order of computation.
template <class T>
void x_to_rows(const RecurrentRows<T>& rows, const Tensor& x, IndexRange images, std::int64_t step, std::int64_t count,
               T* to);

template <class T>
class RecurrentForward {
 public:
  RecurrentForward(const RecurrentRows<T>& rows, bool training) : rows_(rows), training_(training) {}

  std::size_t workspace_bytes() const;
  std::size_t saved_bytes() const;
  std::size_t prepared_bytes() const;
  void prepare(const Args&, ThreadPool&) const;
  void run(const Args&, ThreadPool&) const;

 private:
  struct Buffers {
    T* x;      // rows of a chunk
    T* gates;  // inference: rows of a run of steps
    T* cell;   // inference: cells of one step
    T* h;      // rows of h_slots() steps
  };
  struct Share;
  Buffers allocate(ScratchAllocator&) const;
  std::size_t part_bytes() const {
    return allocated_bytes([&](auto& scratch) { allocate(scratch); });
  }
  std::int64_t run_steps() const;
  std::int64_t h_slots() const { return rows_.op.steps == Steps::all ? rows_.chunk + 1 : 2; }
  void run_part(const Share&, const Args&) const;
  void input_products(const Share&, const Args&, std::int64_t step, std::int64_t count, const T* x, T* gates) const;
  void write_steps(const Share&, const Tensor& y, std::int64_t first, std::int64_t last) const;

  RecurrentRows<T> rows_;
  bool training_;
};

}  // namespace lamina::eigen
