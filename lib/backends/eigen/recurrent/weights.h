#pragma once
// The weights of a recurrent op as its products read them: packed once per pass, or once for all in inference.

#include "lib/backends/eigen/runtime/pool.h"
#include "lib/core/units/scratch_allocator.h"
#include "problem.h"

namespace lamina::eigen {

/// For forward: columns are the gates of x or of h, each gate in whole vectors, padded with zeros.
template <class T>
struct RecurrentForwardWeights {
  T* input;      ///< panels, channels deep; with ids row-major, one row per id
  T* recurrent;  ///< panels, hidden deep
  T* bias;       ///< one row

  static RecurrentForwardWeights allocate(const RecurrentRows<T>&, ScratchAllocator&);
  RightSide<T> input_side(const RecurrentRows<T>&) const;
  RightSide<T> recurrent_side(const RecurrentRows<T>&) const;
  void pack(const RecurrentRows<T>&, const Args&, ThreadPool&) const;
};

/// For backward: rows are gates, columns are the inputs of the gates.
template <class T>
struct RecurrentBackwardWeights {
  T* input;  ///< panels; unused if dx is not wanted
  T* recurrent;

  static RecurrentBackwardWeights allocate(const RecurrentRows<T>&, bool wants_dx, ScratchAllocator&);
  RightSide<T> input_side(const RecurrentRows<T>&) const;
  RightSide<T> recurrent_side(const RecurrentRows<T>&) const;
  void pack(const RecurrentRows<T>&, bool wants_dx, const Args&, ThreadPool&) const;
};

}  // namespace lamina::eigen
