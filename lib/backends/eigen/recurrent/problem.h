#pragma once
// A recurrent op as its passes see it: its extents, its rows of memory, and the images of each part.
//
// Steps are counted in the order of computation. A row is one image at one step, and holds features or gates side by
// side, in whole vectors. Gates are in the order i, f, g, o; in a GRU n, r, z, m, so that the gates that x makes (n, r,
// z) are neighbours, and so are those that h makes (r, z, m). Each thread's part has some images. Its rows lie in the
// order of steps, then images, so that a step or a run of steps is one block of memory.

#include <algorithm>
#include <cstdint>

#include "lib/backends/eigen/gemm/gemm.h"
#include "lib/backends/eigen/runtime/common.h"
#include "lib/backends/eigen/runtime/labels.h"

namespace lamina::eigen {

template <class T>
struct RecurrentRows {
  RecurrentRows(const Recurrent& its, const Shape& x, int thread_count, const MicroKernels<T>& k)
      : kernels(&k),
        op(its),
        threads(thread_count),
        images(x.n),
        steps(x.h),
        channels(op.vocabulary == 0 ? x.c : 0),
        hidden(op.hidden),
        width(round_up(hidden, k.lanes)),
        x_width(round_up(channels, k.lanes)),
        x_ld(apart(x_width)),
        h_ld(apart(width)) {}

  const MicroKernels<T>* kernels;
  Recurrent op;
  int threads;
  std::int64_t images, steps;
  std::int64_t channels;  ///< channels of x; 0 if x is ids
  std::int64_t hidden;
  std::int64_t width;                        ///< elements of h and of each gate in a row
  std::int64_t x_width;                      ///< elements of x in a row
  std::int64_t x_ld, h_ld;                   ///< elements from row to row of x and h
  static constexpr std::int64_t chunk = 16;  ///< steps that are copied to or from rows at once

  std::int64_t gates() const { return 4 * width; }
  std::int64_t products() const { return op.matrices() * width; }  ///< elements of the gates that x makes, from 0 on
  std::int64_t h_first() const { return gates() - products(); }    ///< the first element of the gates that h makes
  /// The index of a gate in weight_ih and in the bias. In weight_hh the gates have the order of a row.
  std::int64_t given(std::int64_t gate) const { return op.cell == Cell::gru && gate < 3 ? (gate + 2) % 3 : gate; }
  std::int64_t rows() const { return images * steps; }
  IndexRange images_of(int part) const { return share_of(images, std::max(1, kernels->rows / 2), part, threads); }
  std::int64_t most_images() const {
    std::int64_t most = 0;
    for (int part = 0; part < threads; ++part) most = std::max(most, images_of(part).last - images_of(part).first);
    return most;
  }
  /// The place of a step along the axis of x.
  std::int64_t place(std::int64_t step) const { return op.reverse ? steps - 1 - step : step; }
  /// The step of [first, last) that comes first along the axis of x.
  std::int64_t foremost(std::int64_t first, std::int64_t last) const { return op.reverse ? last - 1 : first; }
  std::int64_t direction() const { return op.reverse ? -1 : 1; }

 private:
  /// Rows that are an odd number of vectors apart spread over the sets of the L1 cache.
  std::int64_t apart(std::int64_t elements) const {
    return elements / kernels->lanes % 2 == 0 ? elements + kernels->lanes : elements;
  }
};

/// The id of an image at a step; negative if x has no valid id there.
template <class T>
std::int64_t id_at(const RecurrentRows<T>& rows, const Tensor& x, std::int64_t image, std::int64_t step) {
  return whole_number(x.as<const T>()[image * x.pitch + rows.place(step)], rows.op.vocabulary);
}

/// The right side of a product: consecutive packed panels, or rows in place.
template <class T>
struct RightSide {
  T* data = nullptr;
  std::int64_t columns = 0;  ///< columns, in whole vectors
  std::int64_t ld = 0;       ///< elements from row to row
  std::int64_t panel = 0;    ///< elements from panel to panel; 0: in place
};

/// Takes memory for the packed panels of a matrix.
template <class T>
RightSide<T> take_panels(std::int64_t depth, std::int64_t columns, const MicroKernels<T>& kernels,
                         ScratchAllocator& scratch) {
  const std::int64_t width = kernels.width(), panel = depth * width;
  return {scratch.take<T>(divide_up(columns, width) * panel), columns, width, panel};
}

/// c = a * b, or c += a * b. Rows of a are read in place, and c has room for whole vectors. `block` rows of a panel of
/// b stay in the L1 cache while all rows of a are multiplied by them.
template <class T>
void multiply_rows(const MicroKernels<T>& kernels, const T* a, std::int64_t lda, std::int64_t rows, std::int64_t depth,
                   const RightSide<T>& b, T* c, std::int64_t ldc, bool add) {
  constexpr std::int64_t block = 128;
  const T* panel = b.data;
  for (std::int64_t column = 0; column < b.columns;) {
    const std::int64_t vectors = panel_vectors((b.columns - column) / kernels.lanes, kernels.vectors);
    const std::int64_t count = vectors * kernels.lanes;
    const Panel<T> one{panel, c + column, column, count, vectors};
    for (std::int64_t k = 0; k < depth; k += block) {
      multiply(Block<T>{.kernels = &kernels,
                        .rows = rows,
                        .depth = std::min(block, depth - k),
                        .a = {a + k, lda},
                        .b = {{&one, 1}, b.ld, k * b.ld},
                        .c = {ldc},
                        .epilogue = {.add = add},
                        .along = {.begins = k == 0, .ends = k + block >= depth}},
               [](const OutputTile<T>&, std::int64_t, std::int64_t) {});
    }
    column += count;
    panel += b.panel == 0 ? count : b.panel;
  }
}

}  // namespace lamina::eigen
