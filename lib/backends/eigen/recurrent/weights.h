#pragma once
// The weights of a recurrent op as its products read them: packed once per pass or, in inference, only once.

#include <algorithm>

#include "lib/backends/eigen/runtime/pool.h"
#include "problem.h"

namespace lamina::eigen {

/// Packs a matrix whose columns are the rows of `w`, gate by gate. `w` is weight_ih if `input`, otherwise weight_hh.
template <class T>
void pack_gates_as_columns(const RecurrentRows<T>& rows, const T* w, bool input, std::int64_t depth, T* to,
                           ThreadPool& pool) {
  const MicroKernels<T>& kernels = *rows.kernels;
  const std::int64_t width = kernels.width(), panels = divide_up(rows.products(), width);
  pool.split(panels, 1, [&](std::int64_t first, std::int64_t last) {
    if (rows.width != rows.hidden) std::fill(to + first * width * depth, to + last * width * depth, T{0});
    std::int64_t column = 0;
    for (std::int64_t panel = 0; panel < last; ++panel) {
      const std::int64_t vectors = panel_vectors((rows.products() - column) / kernels.lanes, kernels.vectors);
      const std::int64_t end = column + vectors * kernels.lanes;
      T* const packed = to + panel * width * depth;
      for (std::int64_t at = panel < first ? end : column; at < end;) {  // runs within a gate
        const std::int64_t gate = at / rows.width, unit = at % rows.width;
        const std::int64_t run = std::min(end, (gate + 1) * rows.width) - at;
        const std::int64_t real = std::clamp<std::int64_t>(rows.hidden - unit, 0, run);
        if (real > 0)
          kernels.transpose(packed + (at - column), width,
                            w + ((input ? rows.given(gate) : gate) * rows.hidden + unit) * depth, depth, nullptr, 0,
                            real, depth);
        at += run;
      }
      column = end;
    }
  });
}

/// Packs a matrix whose rows are the rows of `w`, gate by gate. `w` is weight_ih if `input`, otherwise weight_hh.
template <class T>
void pack_gates_as_rows(const RecurrentRows<T>& rows, const T* w, bool input, std::int64_t columns, T* to,
                        ThreadPool& pool) {
  const MicroKernels<T>& kernels = *rows.kernels;
  const std::int64_t width = kernels.width(), padded = round_up(columns, kernels.lanes), depth = rows.products();
  pool.split(depth, 1, [&](std::int64_t first, std::int64_t last) {
    T* panel = to;
    for (std::int64_t column = 0; column < padded; panel += width * depth) {
      const std::int64_t count = panel_vectors((padded - column) / kernels.lanes, kernels.vectors) * kernels.lanes;
      const std::int64_t real = std::min(count, columns - column);
      for (std::int64_t k = first; k < last; ++k) {
        const std::int64_t gate = k / rows.width, unit = k % rows.width;
        T* const row = panel + k * width;
        const std::int64_t given = unit < rows.hidden ? real : 0;
        if (given > 0)
          std::copy_n(w + ((input ? rows.given(gate) : gate) * rows.hidden + unit) * columns + column, given, row);
        std::fill(row + given, row + count, T{0});
      }
      column += count;
    }
  });
}

template <class T>
void pack_bias(const RecurrentRows<T>& rows, const T* bias, T* to) {
  std::fill(to, to + rows.gates(), T{0});
  for (std::int64_t gate = 0; gate < 4; ++gate)
    std::copy_n(bias + rows.given(gate) * rows.hidden, rows.hidden, to + gate * rows.width);
}

/// weight_ih with a row for each id.
template <class T>
void pack_ids(const RecurrentRows<T>& rows, const T* w, T* to, ThreadPool& pool) {
  const std::int64_t vocabulary = rows.op.vocabulary;
  pool.split(vocabulary, rows.kernels->lanes, [&](std::int64_t first, std::int64_t last) {
    if (rows.width != rows.hidden || rows.h_first() != 0)
      std::fill(to + first * rows.gates(), to + last * rows.gates(), T{0});
    for (std::int64_t gate = 0; gate < rows.op.matrices(); ++gate)
      rows.kernels->transpose(to + first * rows.gates() + gate * rows.width, rows.gates(),
                              w + rows.given(gate) * rows.hidden * vocabulary + first, vocabulary, nullptr, 0,
                              rows.hidden, last - first);
  });
}

/// For forward: columns are the gates of x or of h, each gate in whole vectors, padded with zeros.
template <class T>
struct RecurrentForwardWeights {
  RightSide<T> input;  ///< input weights, channels deep; with ids one row per id
  RightSide<T> recurrent;
  T* bias;  ///< bias of the gates, one row

  static RecurrentForwardWeights allocate(const RecurrentRows<T>& rows, ScratchAllocator& scratch) {
    const std::int64_t ids = std::int64_t{rows.op.vocabulary} * rows.gates();
    return {ids != 0 ? RightSide<T>{scratch.take<T>(ids)}
                     : take_panels(rows.channels, rows.products(), *rows.kernels, scratch),
            take_panels(rows.hidden, rows.products(), *rows.kernels, scratch), scratch.take<T>(rows.gates())};
  }

  void pack(const RecurrentRows<T>& rows, const Args& args, ThreadPool& pool) const {
    const T* const w = args.w[0].as<T>();
    if (rows.op.vocabulary != 0) {
      pack_ids(rows, w, input.data, pool);
    } else {
      pack_gates_as_columns(rows, w, true, rows.channels, input.data, pool);
    }
    pack_gates_as_columns(rows, args.w[1].as<const T>(), false, rows.hidden, recurrent.data, pool);
    pack_bias(rows, args.w[2].as<const T>(), bias);
  }
};

/// For backward: rows are gates, columns are the inputs of the gates.
template <class T>
struct RecurrentBackwardWeights {
  RightSide<T> input;  ///< input weights; without data if dx is not wanted
  RightSide<T> recurrent;

  static RecurrentBackwardWeights allocate(const RecurrentRows<T>& rows, bool wants_dx, ScratchAllocator& scratch) {
    return {wants_dx ? take_panels(rows.products(), rows.x_width, *rows.kernels, scratch) : RightSide<T>{},
            take_panels(rows.products(), rows.width, *rows.kernels, scratch)};
  }

  void pack(const RecurrentRows<T>& rows, bool wants_dx, const Args& args, ThreadPool& pool) const {
    if (wants_dx) pack_gates_as_rows(rows, args.w[0].as<const T>(), true, rows.channels, input.data, pool);
    pack_gates_as_rows(rows, args.w[1].as<const T>(), false, rows.hidden, recurrent.data, pool);
  }
};

}  // namespace lamina::eigen
