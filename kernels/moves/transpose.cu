// Transposes matrices. A block moves a tile of 32 x 32 elements through shared memory, so that neighbouring threads
// read and write neighbouring elements of both matrices. A row of the tile has one element more than 32, so that its
// columns lie in different banks. Per element: one read and one write.

#include "moves.h"

#include "kernels/common/elements.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int side = 32, rows_at_once = 8;

template <class From, class To, bool adds>
__global__ void transpose_kernel(Matrices<const From> from, Matrices<To> to) {
  LAMINA_SHARED(Computed<To>[side][side + 1], tile);
  const int lane = static_cast<int>(threadIdx.x) % side, first = static_cast<int>(threadIdx.x) / side;
  const int across = divide_up(from.columns, side), tiles = across * divide_up(from.rows, side);
  const int matrix = static_cast<int>(blockIdx.x) / tiles, place = static_cast<int>(blockIdx.x) % tiles;
  const int row = place / across * side, column = place % across * side;
  for (int i = first; i < side; i += rows_at_once)
    if (row + i < from.rows && column + lane < from.columns)
      tile[i][lane] = load(from.data[matrix * from.apart + (row + i) * from.pitch + column + lane]);
  __syncthreads();
  for (int i = first; i < side; i += rows_at_once)
    if (column + i < from.columns && row + lane < from.rows)
      put(to.data[matrix * to.apart + (column + i) * to.pitch + row + lane], tile[lane][i], adds);
}

}  // namespace

template <class From, class To, bool adds>
void transpose(Stream stream, Matrices<const From> from, Matrices<To> to) {
  const std::int64_t blocks = std::int64_t{from.count} * divide_up(from.columns, side) * divide_up(from.rows, side);
  launch(LAMINA_KERNEL(transpose_kernel<From, To, adds>), dim3(static_cast<unsigned>(blocks)),
         dim3(side * rows_at_once), 0, stream, from, to);
}

#define LAMINA_INSTANTIATE(T)                                      \
  template void transpose(Stream, Matrices<const T>, Matrices<T>); \
  template void transpose<T, T, true>(Stream, Matrices<const T>, Matrices<T>);
#define LAMINA_INSTANTIATE_HALVES(Half)                                   \
  template void transpose(Stream, Matrices<const Half>, Matrices<Half>);  \
  template void transpose(Stream, Matrices<const Half>, Matrices<float>); \
  template void transpose(Stream, Matrices<const float>, Matrices<Half>);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)
LAMINA_FOR_HALVES(LAMINA_INSTANTIATE_HALVES)

}  // namespace lamina::LAMINA_CUDA_SPACE
