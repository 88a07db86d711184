#pragma once
// The forward pass of a recurrent op.
//
// Each thread has some images, and no step waits for another thread. For a run of steps it transposes x into rows and
// multiplies them all by the input weights. Then for each step it adds the product of h with the recurrent weights, and
// makes gates, cell and h from the sums in one pass over the rows.

#include <algorithm>
#include <cstddef>
#include <limits>

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
               T* to) {
  const std::int64_t own = images.last - images.first, between = own * rows.x_ld * rows.direction();
  const std::int64_t foremost = rows.foremost(step, step + count);
  for (std::int64_t n = images.first; n < images.last; ++n)
    rows.kernels->transpose(to + ((foremost - step) * own + n - images.first) * rows.x_ld, between,
                            x.as<const T>() + n * x.pitch + rows.place(foremost), rows.steps, nullptr, 0, rows.channels,
                            count);
}

template <class T>
class RecurrentForward {
 public:
  RecurrentForward(const RecurrentRows<T>& rows, bool training) : rows_(rows), training_(training) {}

  std::size_t workspace_bytes() const {
    return (training_ ? prepared_bytes() : 0) + static_cast<std::size_t>(rows_.threads) * part_bytes();
  }

  std::size_t saved_bytes() const {
    return allocated_bytes([&](auto& scratch) { RecurrentSaved<T>::allocate(rows_, scratch); });
  }

  std::size_t prepared_bytes() const {
    return allocated_bytes([&](auto& scratch) { RecurrentForwardWeights<T>::allocate(rows_, scratch); });
  }

  void prepare(const Args& args, ThreadPool& pool) const {
    ScratchAllocator prepared(args.prepared);
    RecurrentForwardWeights<T>::allocate(rows_, prepared).pack(rows_, args, pool);
  }

  void run(const Args& args, ThreadPool& pool) const {
    ScratchAllocator workspace(args.workspace), prepared(args.prepared), saved(args.saved);
    const auto weights = RecurrentForwardWeights<T>::allocate(rows_, training_ ? workspace : prepared);
    if (training_) weights.pack(rows_, args, pool);
    const RecurrentSaved<T> whole = training_ ? RecurrentSaved<T>::allocate(rows_, saved) : RecurrentSaved<T>{};
    const std::size_t bytes = part_bytes();
    pool.run([&](int part) {
      Share share{rows_.images_of(part), weights, {}, {}};
      if (share.count() == 0) return;
      ScratchAllocator own = workspace.part(part, bytes);
      share.buffers = allocate(own);
      if (training_) {
        const std::int64_t row = share.images.first * rows_.steps;
        share.saved = {whole.gates + row * rows_.gates(), whole.cells + row * rows_.width};
      }
      run_part(share, args);
    });
  }

 private:
  static constexpr std::int64_t run_bytes = 128 * 1024;  // gates whose input products are computed at once

  struct Buffers {
    T* x;      // rows of a chunk
    T* gates;  // inference: rows of a run of steps
    T* cell;   // inference: cells of one step
    T* h;      // rows of h_slots() steps
  };
  struct Share {
    IndexRange images;
    RecurrentForwardWeights<T> weights;
    RecurrentSaved<T> saved;  // training: saved numbers of the part
    Buffers buffers;
    std::int64_t count() const { return images.last - images.first; }
  };

  Buffers allocate(ScratchAllocator& scratch) const {
    const std::int64_t images = rows_.most_images();
    return {scratch.take<T>(rows_.chunk * images * (rows_.channels == 0 ? 0 : rows_.x_ld)),
            scratch.take<T>(training_ ? 0 : run_steps() * images * rows_.gates()),
            scratch.take<T>(training_ ? 0 : images * rows_.width), scratch.take<T>(h_slots() * images * rows_.h_ld)};
  }

  std::size_t part_bytes() const {
    return allocated_bytes([&](auto& scratch) { allocate(scratch); });
  }

  /// The number of steps whose gates stay in cache from the input product to the recurrent product.
  std::int64_t run_steps() const {
    const std::int64_t step_bytes = rows_.most_images() * rows_.gates() * static_cast<std::int64_t>(sizeof(T));
    return std::clamp<std::int64_t>(run_bytes / step_bytes, 1, rows_.chunk);
  }

  std::int64_t h_slots() const { return rows_.op.steps == Steps::all ? rows_.chunk + 1 : 2; }

  void run_part(const Share& share, const Args& args) const {
    const std::int64_t count = share.count(), slot = count * rows_.h_ld, run = run_steps();
    const bool all = rows_.op.steps == Steps::all;
    T* const h = share.buffers.h;
    for (std::int64_t start = 0; start < rows_.steps; start += rows_.chunk) {
      const std::int64_t end = std::min(start + rows_.chunk, rows_.steps);
      const auto h_of = [&](std::int64_t step) { return h + (all ? step - start + 1 : step % 2) * slot; };
      if (rows_.channels != 0) x_to_rows(rows_, args.x[0], share.images, start, end - start, share.buffers.x);
      for (std::int64_t first = start; first < end; first += run) {
        const std::int64_t last = std::min(first + run, end);
        T* const gates = training_ ? share.saved.gates + first * count * rows_.gates() : share.buffers.gates;
        input_products(share, args, first, last - first, share.buffers.x + (first - start) * count * rows_.x_ld, gates);
        for (std::int64_t step = first; step < last; ++step) {
          T* const sums = gates + (step - first) * count * rows_.gates();
          if (step > 0)
            multiply_rows(*rows_.kernels, h_of(step - 1), rows_.h_ld, count, rows_.hidden, share.weights.recurrent,
                          sums + rows_.h_first(), rows_.gates(), true);
          T* const cell = training_ ? share.saved.cells + step * count * rows_.width : share.buffers.cell;
          rows_.kernels->activations.cell({.rows = count,
                                           .width = rows_.width,
                                           .gates = sums,
                                           .bias = share.weights.bias,
                                           .cell_before = step == 0   ? nullptr
                                                          : training_ ? cell - count * rows_.width
                                                                      : cell,
                                           .cell = cell,
                                           .h = h_of(step),
                                           .h_ld = rows_.h_ld,
                                           .gru = rows_.op.cell == Cell::gru,
                                           .hard = rows_.op.gates == Gates::hard_sigmoid});
        }
      }
      if (!all) continue;
      write_steps(share, args.y, start, end);
      std::copy_n(h_of(end - 1), slot, h);
    }
    if (all) return;
    for (std::int64_t n = 0; n < count; ++n)
      std::copy_n(h + (rows_.steps - 1) % 2 * slot + n * rows_.h_ld, rows_.hidden,
                  args.y.as<T>() + (share.images.first + n) * args.y.pitch);
  }

  /// Computes the gates of a run of steps, before the recurrent products and the bias.
  void input_products(const Share& share, const Args& args, std::int64_t step, std::int64_t count, const T* x,
                      T* gates) const {
    if (rows_.op.vocabulary == 0) {
      multiply_rows(*rows_.kernels, x, rows_.x_ld, count * share.count(), rows_.channels, share.weights.input, gates,
                    rows_.gates(), false);
      for (std::int64_t row = 0; row < count * share.count(); ++row, gates += rows_.gates())
        std::fill(gates + rows_.products(), gates + rows_.gates(), T{0});
      return;
    }
    for (std::int64_t s = step; s < step + count; ++s) {
      for (std::int64_t n = share.images.first; n < share.images.last; ++n, gates += rows_.gates()) {
        const std::int64_t id = id_at(rows_, args.x[0], n, s);
        if (id >= 0) {
          std::copy_n(share.weights.input.data + id * rows_.gates(), rows_.gates(), gates);
        } else {
          std::fill_n(gates, rows_.gates(), std::numeric_limits<T>::quiet_NaN());
        }
      }
    }
  }

  void write_steps(const Share& share, const Tensor& y, std::int64_t first, std::int64_t last) const {
    const std::int64_t foremost = rows_.foremost(first, last), count = share.count();
    const T* const h = share.buffers.h + (foremost - first + 1) * count * rows_.h_ld;
    for (std::int64_t n = 0; n < count; ++n)
      rows_.kernels->transpose(y.as<T>() + (share.images.first + n) * y.pitch + rows_.place(foremost), rows_.steps,
                               h + n * rows_.h_ld, count * rows_.h_ld * rows_.direction(), nullptr, 0, last - first,
                               rows_.hidden);
  }

  RecurrentRows<T> rows_;
  bool training_;
};

}  // namespace lamina::eigen
