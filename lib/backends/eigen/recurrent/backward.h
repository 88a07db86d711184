#pragma once
// The backward pass of a recurrent op.
//
// Each thread has some images, and goes from the last step to the first. At each step it adds to dh the gradients of
// the next step's gates, times the recurrent weights. Then it makes the gradients of this step's gates in one pass over
// the rows, and keeps them. For a run of steps dx is one product. At the end the threads share the gates: the gradients
// of all weights are products over all rows of all steps. The rows lie thread by thread, so the bits of these gradients
// depend on the number of threads.

#include <algorithm>
#include <cstddef>

#include "forward.h"
#include "lib/backends/eigen/runtime/elements.h"

namespace lamina::eigen {

template <class T>
class RecurrentBackward {
 public:
  RecurrentBackward(const RecurrentRows<T>& rows, bool add_dx, bool add_dw, bool wants_dx)
      : rows_(rows), add_dx_(add_dx), add_dw_(add_dw), wants_dx_(wants_dx) {}

  std::size_t workspace_bytes() const {
    return allocated_bytes([&](auto& scratch) { allocate_shared(scratch); }) +
           static_cast<std::size_t>(rows_.threads) * part_bytes();
  }

  void run(const Args& args, ThreadPool& pool) const {
    ScratchAllocator workspace(args.workspace), saved(args.saved);
    const Shared shared = allocate_shared(workspace);
    const auto whole = RecurrentSaved<T>::allocate(rows_, saved);
    shared.weights.pack(rows_, wants_dx_, args, pool);
    const std::size_t bytes = part_bytes();
    pool.run([&](int part) {
      const IndexRange images = rows_.images_of(part);
      if (images.first == images.last) return;
      ScratchAllocator own = workspace.part(part, bytes);
      const std::int64_t row = images.first * rows_.steps;
      run_steps({images,
                 shared,
                 {whole.gates + row * rows_.gates(), whole.cells + row * rows_.width},
                 shared.dgates + row * rows_.gates(),
                 shared.h + row * rows_.h_ld,
                 shared.x + row * rows_.x_ld,
                 allocate_steps(own)},
                args);
    });
    pool.run([&](int part) {
      const IndexRange gates = share_of(rows_.gates(), rows_.kernels->lanes, part, rows_.threads);
      if (gates.first == gates.last) return;
      ScratchAllocator own = workspace.part(part, bytes);
      sum_weights(shared, allocate_sums(own), args, gates);
      write_weights(shared, args, gates);
    });
  }

 private:
  static constexpr std::int64_t sum_depth = 128;  // rows whose products are added to the weights' gradients at once

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
  struct Share {
    IndexRange images;
    Shared shared;
    RecurrentSaved<T> saved;  // saved numbers of the part; the rows below are also the part's
    T* dgates;
    T* h;
    T* x;
    StepBuffers buffers;
    std::int64_t count() const { return images.last - images.first; }
  };

  Shared allocate_shared(ScratchAllocator& scratch) const {
    const std::int64_t rows = rows_.rows(), gates = rows_.gates();
    return {RecurrentBackwardWeights<T>::allocate(rows_, wants_dx_, scratch),
            scratch.take<T>(rows * gates),
            scratch.take<T>(rows * rows_.h_ld),
            scratch.take<T>(rows_.channels == 0 ? 0 : rows * rows_.x_ld),
            scratch.take<T>(gates * (rows_.channels == 0 ? rows_.op.vocabulary : rows_.x_width)),
            scratch.take<T>(gates * rows_.width),
            scratch.take<double>(gates)};
  }

  StepBuffers allocate_steps(ScratchAllocator& scratch) const {
    const std::int64_t images = rows_.most_images();
    return {scratch.take<T>(rows_.chunk * images * rows_.width), scratch.take<T>(images * rows_.width),
            scratch.take<T>(wants_dx_ ? rows_.chunk * images * rows_.x_width : 0),
            scratch.take<T>(wants_dx_ && add_dx_ ? rows_.chunk * rows_.channels : 0)};
  }

  SumBuffers allocate_sums(ScratchAllocator& scratch) const {
    const std::int64_t gates = round_up(divide_up(rows_.gates(), rows_.threads), rows_.kernels->lanes);
    return {scratch.take<T>(sum_depth * gates), scratch.take<T>(gates)};
  }

  std::size_t part_bytes() const {
    return std::max(allocated_bytes([&](auto& scratch) { allocate_steps(scratch); }),
                    allocated_bytes([&](auto& scratch) { allocate_sums(scratch); }));
  }

  void run_steps(const Share& share, const Args& args) const {
    const std::int64_t count = share.count(), gates = rows_.gates(), width = rows_.width;
    std::fill_n(share.buffers.dcell, count * width, T{0});
    for (std::int64_t last = rows_.steps; last > 0;) {
      const std::int64_t first = (last - 1) / rows_.chunk * rows_.chunk;
      read_dy(share, args.dy, first, last);
      for (std::int64_t step = last; step-- > first;) {
        T* const dh = share.buffers.dh + (step - first) * count * width;
        if (step + 1 < rows_.steps)
          multiply_rows(*rows_.kernels, share.dgates + (step + 1) * count * gates + rows_.h_first(), gates, count,
                        rows_.products(), share.shared.weights.recurrent, dh, width, true);
        const T* const cell = share.saved.cells + step * count * width;
        rows_.kernels->activations.cell_gradient({.rows = count,
                                                  .width = width,
                                                  .gates = share.saved.gates + step * count * gates,
                                                  .cell_before = step == 0 ? nullptr : cell - count * width,
                                                  .cell = cell,
                                                  .dh = dh,
                                                  .dcell = share.buffers.dcell,
                                                  .dgates = share.dgates + step * count * gates,
                                                  .h = share.h + step * count * rows_.h_ld,
                                                  .h_ld = rows_.h_ld,
                                                  .gru = rows_.op.cell == Cell::gru,
                                                  .hard = rows_.op.gates == Gates::hard_sigmoid});
      }
      if (rows_.channels != 0)
        x_to_rows(rows_, args.x[0], share.images, first, last - first, share.x + first * count * rows_.x_ld);
      if (wants_dx_ && wanted(args, 0)) {
        multiply_rows(*rows_.kernels, share.dgates + first * count * gates, gates, (last - first) * count,
                      rows_.products(), share.shared.weights.input, share.buffers.dx, rows_.x_width, false);
        write_dx(share, args.dx[0], first, last);
      }
      last = first;
    }
  }

  /// Copies dy of some steps to rows. Rows without a dy are 0.
  void read_dy(const Share& share, const Tensor& dy, std::int64_t first, std::int64_t last) const {
    const std::int64_t count = share.count(), width = rows_.width;
    T* const rows = share.buffers.dh;
    const bool all = rows_.op.steps == Steps::all;
    if (!all || width != rows_.hidden) std::fill_n(rows, (last - first) * count * width, T{0});
    const std::int64_t foremost = rows_.foremost(first, last);
    for (std::int64_t n = 0; n < count; ++n) {
      const T* const from = dy.as<const T>() + (share.images.first + n) * dy.pitch;
      if (all) {
        rows_.kernels->transpose(rows + ((foremost - first) * count + n) * width, count * width * rows_.direction(),
                                 from + rows_.place(foremost), rows_.steps, nullptr, 0, rows_.hidden, last - first);
      } else if (last == rows_.steps) {
        std::copy_n(from, rows_.hidden, rows + ((last - 1 - first) * count + n) * width);
      }
    }
  }

  void write_dx(const Share& share, const Tensor& dx, std::int64_t first, std::int64_t last) const {
    const std::int64_t count = share.count(), foremost = rows_.foremost(first, last);
    for (std::int64_t n = 0; n < count; ++n) {
      const T* const from = share.buffers.dx + ((foremost - first) * count + n) * rows_.x_width;
      const std::int64_t between = count * rows_.x_width * rows_.direction();
      T* const to = dx.as<T>() + (share.images.first + n) * dx.pitch + rows_.place(foremost);
      T* const turned = add_dx_ ? share.buffers.turned : to;
      const std::int64_t ld = add_dx_ ? last - first : rows_.steps;
      rows_.kernels->transpose(turned, ld, from, between, nullptr, 0, last - first, rows_.channels);
      for (std::int64_t c = 0; add_dx_ && c < rows_.channels; ++c)
        put(to + c * rows_.steps, turned + c * ld, last - first, true);
    }
  }

  void sum_weights(const Shared& shared, const SumBuffers& buffers, const Args& args, IndexRange gates) const {
    std::fill(shared.db + gates.first, shared.db + gates.last, 0.0);
    std::fill(shared.dw_recurrent + gates.first * rows_.width, shared.dw_recurrent + gates.last * rows_.width, T{0});
    bool begins = true;
    for (int part = 0; part < rows_.threads; ++part) {
      const IndexRange images = rows_.images_of(part);
      const std::int64_t count = images.last - images.first, end = images.last * rows_.steps;
      for (std::int64_t row = images.first * rows_.steps; row < end; row += sum_depth) {
        const std::int64_t depth = std::min(sum_depth, end - row);
        const std::int64_t skipped = std::clamp<std::int64_t>(images.first * rows_.steps + count - row, 0, depth);
        sum_block(shared, buffers, gates, row, depth, skipped, count, begins);
        begins = false;
      }
    }
    if (rows_.channels == 0) sum_ids(shared, args, gates);
  }

  /// Adds the products of some rows. The first `skipped` rows belong to the first step, before which h is 0.
  void sum_block(const Shared& shared, const SumBuffers& buffers, IndexRange gates, std::int64_t row,
                 std::int64_t depth, std::int64_t skipped, std::int64_t images, bool first) const {
    const MicroKernels<T>& kernels = *rows_.kernels;
    const std::int64_t own = gates.last - gates.first;
    const T* const dgates = shared.dgates + row * rows_.gates() + gates.first;
    std::fill_n(buffers.sums, own, T{0});
    for (std::int64_t k = 0; k < depth; ++k) put(buffers.sums, dgates + k * rows_.gates(), own, true);
    for (std::int64_t i = 0; i < own; ++i) shared.db[gates.first + i] += static_cast<double>(buffers.sums[i]);
    kernels.transpose(buffers.dgates, sum_depth, dgates, rows_.gates(), nullptr, 0, depth, own);
    const std::int64_t of_x = std::min(gates.last, rows_.products()) - gates.first;
    const std::int64_t first_of_h = std::max(gates.first, rows_.h_first());
    if (rows_.channels != 0 && of_x > 0)
      multiply_rows(kernels, buffers.dgates, sum_depth, of_x, depth,
                    {shared.x + row * rows_.x_ld, rows_.x_width, rows_.x_ld, 0},
                    shared.dw_input + gates.first * rows_.x_width, rows_.x_width, !first);
    if (skipped < depth && first_of_h < gates.last)
      multiply_rows(kernels, buffers.dgates + (first_of_h - gates.first) * sum_depth + skipped, sum_depth,
                    gates.last - first_of_h, depth - skipped,
                    {shared.h + (row + skipped - images) * rows_.h_ld, rows_.width, rows_.h_ld, 0},
                    shared.dw_recurrent + first_of_h * rows_.width, rows_.width, true);
  }

  void sum_ids(const Shared& shared, const Args& args, IndexRange gates) const {
    const std::int64_t own = gates.last - gates.first;
    for (std::int64_t id = 0; id < rows_.op.vocabulary; ++id)
      std::fill_n(shared.dw_input + id * rows_.gates() + gates.first, own, T{0});
    const T* dgates = shared.dgates + gates.first;
    for (int part = 0; part < rows_.threads; ++part) {
      const IndexRange images = rows_.images_of(part);
      for (std::int64_t step = 0; step < rows_.steps; ++step) {
        for (std::int64_t n = images.first; n < images.last; ++n, dgates += rows_.gates()) {
          const std::int64_t id = id_at(rows_, args.x[0], n, step);
          if (id >= 0) put(shared.dw_input + id * rows_.gates() + gates.first, dgates, own, true);
        }
      }
    }
  }

  void write_weights(const Shared& shared, const Args& args, IndexRange gates) const {
    const auto dw = [&](std::size_t i) { return args.dw.size() <= i ? nullptr : args.dw[i].template as<T>(); };
    const std::int64_t channels = rows_.channels == 0 ? rows_.op.vocabulary : rows_.channels;
    for (std::int64_t i = gates.first; i < gates.last; ++i) {
      const std::int64_t unit = i % rows_.width, row = rows_.given(i / rows_.width) * rows_.hidden + unit;
      if (unit >= rows_.hidden) continue;
      if (T* const to = dw(0); to != nullptr && i < rows_.products()) {
        if (rows_.channels != 0) {
          put(to + row * channels, shared.dw_input + i * rows_.x_width, channels, add_dw_);
        } else {
          for (std::int64_t id = 0; id < channels; ++id) {
            T& element = to[row * channels + id];
            element = shared.dw_input[id * rows_.gates() + i] + (add_dw_ ? element : T{0});
          }
        }
      }
      if (T* const to = dw(1); to != nullptr && i >= rows_.h_first())
        put(to + ((i - rows_.h_first()) / rows_.width * rows_.hidden + unit) * rows_.hidden,
            shared.dw_recurrent + i * rows_.width, rows_.hidden, add_dw_);
      if (T* const to = dw(2); to != nullptr)
        to[row] = static_cast<T>(shared.db[i] + (add_dw_ ? static_cast<double>(to[row]) : 0.0));
    }
  }

  RecurrentRows<T> rows_;
  bool add_dx_, add_dw_, wants_dx_;
};

}  // namespace lamina::eigen
