#pragma once
// y[n,:,place] = table[ids[n,place],:], and the gradient of the table.

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// A place of the batch, and the row of its id.
struct PlaceOfRow {
  int row, place;
};

/// The table is rows x features. An id that is not a whole number from 0 to rows - 1 gives NaN.
template <class T>
void embedding_forward(Stream, View<const T> ids, const T* table, int rows, View<T> y);

/// dtable = the sum of dy over the places of each row, in their order, or dtable += with `adds`. `places` is workspace
/// for two places per id; there must be fewer than 2^31 ids. Invalid ids add nothing.
template <class T>
void embedding_backward(Stream, View<const T> ids, View<const T> dy, PlaceOfRow* places, T* dtable, int rows,
                        bool adds);

}  // namespace lamina::LAMINA_CUDA_SPACE
