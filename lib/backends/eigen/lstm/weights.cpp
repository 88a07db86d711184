// Packing the weights of an LSTM.

#include "weights.h"

namespace lamina::eigen {
namespace {

/// Packs columns that are rows of `w` (4 hidden x depth), gate by gate.
template <class T>
void pack_gates_as_columns(const LstmRows<T>& rows, const T* w, std::int64_t depth, T* to, ThreadPool& pool) {
  const MicroKernels<T>& kernels = *rows.kernels;
  const std::int64_t width = kernels.width(), panels = divide_up(rows.gates(), width);
  pool.split(panels, 1, [&](std::int64_t first, std::int64_t last) {
    if (rows.width != rows.hidden) std::fill(to + first * width * depth, to + last * width * depth, T{0});
    std::int64_t column = 0;
    for (std::int64_t panel = 0; panel < last; ++panel) {
      const std::int64_t vectors = panel_vectors((rows.gates() - column) / kernels.lanes, kernels.vectors);
      const std::int64_t end = column + vectors * kernels.lanes;
      T* const packed = to + panel * width * depth;
      for (std::int64_t at = panel < first ? end : column; at < end;) {  // runs within a gate
        const std::int64_t gate = at / rows.width, unit = at % rows.width;
        const std::int64_t run = std::min(end, (gate + 1) * rows.width) - at;
        const std::int64_t real = std::clamp<std::int64_t>(rows.hidden - unit, 0, run);
        if (real > 0)
          kernels.transpose(packed + (at - column), width, w + (gate * rows.hidden + unit) * depth, depth, nullptr, 0,
                            real, depth);
        at += run;
      }
      column = end;
    }
  });
}

/// Packs rows that are rows of `w` (4 hidden x columns), gate by gate.
template <class T>
void pack_gates_as_rows(const LstmRows<T>& rows, const T* w, std::int64_t columns, T* to, ThreadPool& pool) {
  const MicroKernels<T>& kernels = *rows.kernels;
  const std::int64_t width = kernels.width(), padded = round_up(columns, kernels.lanes), depth = rows.gates();
  pool.split(depth, 1, [&](std::int64_t first, std::int64_t last) {
    T* panel = to;
    for (std::int64_t column = 0; column < padded; panel += width * depth) {
      const std::int64_t count = panel_vectors((padded - column) / kernels.lanes, kernels.vectors) * kernels.lanes;
      const std::int64_t real = std::min(count, columns - column);
      for (std::int64_t k = first; k < last; ++k) {
        const std::int64_t gate = k / rows.width, unit = k % rows.width;
        T* const row = panel + k * width;
        const std::int64_t given = unit < rows.hidden ? real : 0;
        if (given > 0) std::copy_n(w + (gate * rows.hidden + unit) * columns + column, given, row);
        std::fill(row + given, row + count, T{0});
      }
      column += count;
    }
  });
}

template <class T>
void pack_bias(const LstmRows<T>& rows, const T* bias, T* to) {
  std::fill(to, to + rows.gates(), T{0});
  for (std::int64_t gate = 0; gate < 4; ++gate)
    std::copy_n(bias + gate * rows.hidden, rows.hidden, to + gate * rows.width);
}

/// weight_ih with a row for each id.
template <class T>
void pack_ids(const LstmRows<T>& rows, const T* w, T* to, ThreadPool& pool) {
  const std::int64_t vocabulary = rows.op.vocabulary;
  pool.split(vocabulary, rows.kernels->lanes, [&](std::int64_t first, std::int64_t last) {
    if (rows.width != rows.hidden) std::fill(to + first * rows.gates(), to + last * rows.gates(), T{0});
    for (std::int64_t gate = 0; gate < 4; ++gate)
      rows.kernels->transpose(to + first * rows.gates() + gate * rows.width, rows.gates(),
                              w + gate * rows.hidden * vocabulary + first, vocabulary, nullptr, 0, rows.hidden,
                              last - first);
  });
}

}  // namespace

template <class T>
LstmForwardWeights<T> LstmForwardWeights<T>::allocate(const LstmRows<T>& rows, ScratchAllocator& scratch) {
  const std::int64_t ids = std::int64_t{rows.op.vocabulary} * rows.gates();
  return {scratch.take<T>(ids != 0 ? ids : packed_elements(rows.channels, rows.gates(), *rows.kernels)),
          scratch.take<T>(packed_elements(rows.hidden, rows.gates(), *rows.kernels)), scratch.take<T>(rows.gates())};
}

template <class T>
RightSide<T> LstmForwardWeights<T>::input_side(const LstmRows<T>& rows) const {
  return {input, rows.gates(), rows.kernels->width(), rows.kernels->width() * rows.channels};
}

template <class T>
RightSide<T> LstmForwardWeights<T>::recurrent_side(const LstmRows<T>& rows) const {
  return {recurrent, rows.gates(), rows.kernels->width(), rows.kernels->width() * rows.hidden};
}

template <class T>
void LstmForwardWeights<T>::pack(const LstmRows<T>& rows, const Args& args, ThreadPool& pool) const {
  const T* const w = args.w[0].as<T>();
  if (rows.op.vocabulary != 0) {
    pack_ids(rows, w, input, pool);
  } else {
    pack_gates_as_columns(rows, w, rows.channels, input, pool);
  }
  pack_gates_as_columns(rows, args.w[1].as<const T>(), rows.hidden, recurrent, pool);
  pack_bias(rows, args.w[2].as<const T>(), bias);
}

template <class T>
LstmBackwardWeights<T> LstmBackwardWeights<T>::allocate(const LstmRows<T>& rows, bool wants_dx,
                                                        ScratchAllocator& scratch) {
  return {scratch.take<T>(wants_dx ? packed_elements(rows.gates(), rows.x_width, *rows.kernels) : 0),
          scratch.take<T>(packed_elements(rows.gates(), rows.width, *rows.kernels))};
}

template <class T>
RightSide<T> LstmBackwardWeights<T>::input_side(const LstmRows<T>& rows) const {
  return {input, rows.x_width, rows.kernels->width(), rows.kernels->width() * rows.gates()};
}

template <class T>
RightSide<T> LstmBackwardWeights<T>::recurrent_side(const LstmRows<T>& rows) const {
  return {recurrent, rows.width, rows.kernels->width(), rows.kernels->width() * rows.gates()};
}

template <class T>
void LstmBackwardWeights<T>::pack(const LstmRows<T>& rows, bool wants_dx, const Args& args, ThreadPool& pool) const {
  if (wants_dx) pack_gates_as_rows(rows, args.w[0].as<const T>(), rows.channels, input, pool);
  pack_gates_as_rows(rows, args.w[1].as<const T>(), rows.hidden, recurrent, pool);
}

template struct LstmForwardWeights<float>;
template struct LstmForwardWeights<double>;
template struct LstmBackwardWeights<float>;
template struct LstmBackwardWeights<double>;

}  // namespace lamina::eigen
