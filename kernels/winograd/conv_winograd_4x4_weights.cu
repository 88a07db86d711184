// The weight gradient by Winograd's F(4x4, 3x3), fused: transformed patches and their products stay out of
// global memory.
//
//   dw = G^T [ sum over tiles of (A dy A^T) * (B^T d B) ] G         d: 6x6 patch of x, dy: 4x4 tile, dw: 3x3 filter
//
// A block computes 32 filters x 32 channels (f64: 16 x 16) of one group, for a range of tiles. Each of its 12 warps has
// 3 of the 36 positions, with the range's whole sum in registers (winograd_block.h). Tiles come in pairs of
// neighbours along a row, whose patches are 10 columns of x, through a pipeline with one barrier per pair. At
// any time
//
// clang-format off
//   pair i + 2   is loaded, a column of x and of dy per thread, and transformed along the columns  -> columns
//   pair i + 1   is transformed along rows                                                         -> patches, tiles
//   pair i       is multiplied
// clang-format on
//
// At the end the 36 positions of a filter and channel meet in shared memory, a quarter of the filters at a time, and
// are transformed. The ranges' sums go to `partial` and are added in order by a second kernel (conv_ranges.cu).

#include "conv_winograd_4x4.h"
#include "kernels/common/packs.h"
#include "kernels/conv/conv_ranges.h"
#include "kernels/conv/conv_schedule.h"
#include "winograd_block.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr int taps = 9;

/// How a block is partitioned: its rows are filters, its columns are channels.
template <class T>
struct Blocking : WinogradBlock<T> {
  using Block = WinogradBlock<T>;
  static constexpr int filters = Block::rows, channels = Block::columns;
  static constexpr int pair = 2;                         // tiles of a step
  static constexpr int dy_width = pair * winograd_tile;  // columns of dy that a pair reads
  static constexpr int x_width = dy_width + 2;           // columns of x that a pair reads
  // Columns and rows of a step, each for one thread, and the elements of the transformed columns.
  static constexpr int x_columns = channels * x_width, dy_columns = filters * dy_width;
  static constexpr int x_rows = pair * winograd_patch * channels, dy_rows = pair * winograd_patch * filters;
  static constexpr int step_columns = winograd_patch * x_columns, step_dy_columns = winograd_patch * dy_columns;
  static constexpr int step_patches = pair * winograd_positions * channels;
  static constexpr int step_tiles = pair * winograd_positions * filters;
  static constexpr int step = step_patches + step_tiles + step_columns + step_dy_columns;
  static constexpr int shared = 2 * step;
  static constexpr int meeting = winograd_positions * Block::slots * channels;
  static constexpr int slot_weights = channels * taps;                // weights of the filter in a slot
  static constexpr int slot_threads = Block::threads / Block::slots;  // threads that write them
  /// These conditions are known to the compiler if no thread is idle.
  __device__ static bool is_x_row(int item) { return x_rows == Block::threads || item < x_rows; }
  __device__ static bool is_dy_row(int item) { return dy_rows == Block::threads || item < dy_rows; }
  static_assert(x_columns <= Block::threads && dy_columns <= Block::threads, "too few threads for columns");
  static_assert(x_rows <= Block::threads && dy_rows <= Block::threads, "too few threads for rows");
  static_assert(slot_weights % slot_threads == 0, "weights would be left over");
  static_assert(shared * sizeof(T) <= 65536, "more shared memory than a block of compute capability 7.5 has");
  static_assert(meeting + Block::slots * slot_weights <= shared, "filters do not fit");
};

/// The numbers that the blocks of a launch share, besides the tensors. Pairs of tiles are numbered through rows,
/// columns and images. A column's pointer advances by a pair's width with every pair, and by these further distances
/// after a row of pairs or an image.
struct Grid {
  int filters, channels;  // filters and channels of a group
  int filter_blocks, channel_blocks, pair_rows, pair_columns;
  std::int64_t pairs, range_pairs;
  std::int64_t x_row, dy_row, x_image, dy_image, mask_image;
};

/// A mask of the bits r with 0 <= first + r < extent.
__device__ inline unsigned rows_inside(int first, int count, int extent) {
  const int low = max(-first, 0), high = min(extent - first, count);
  return low < high ? (1U << high) - (1U << low) : 0;
}

/// The columns of x and dy that this thread loads, in every pair of tiles.
template <class T, bool masked>
struct Columns {
  int n, row, column;  // position of the pair
  bool brings_x, brings_dy;
  int x_at, dy_at;                       // offset of the first pair's column in its plane
  unsigned x_inside = 0, dy_inside = 0;  // bit r: whether row r of the pair is in the plane
  const T* x;                            // topmost elements, inside or not
  const T* dy;
  const T* mask;

  __device__ Columns(const WinogradWeights<T>& conv, const Grid& grid, int group, int first_filter, int first_channel,
                     std::int64_t pair)
      : n(static_cast<int>(pair / grid.pair_columns / grid.pair_rows)),
        row(static_cast<int>(pair / grid.pair_columns % grid.pair_rows)),
        column(static_cast<int>(pair % grid.pair_columns)) {
    const int x_item = x_item_of(), dy_item = dy_item_of();
    const int channel = first_channel + x_item / Blocking<T>::x_width,
              filter = first_filter + dy_item / Blocking<T>::dy_width;
    brings_x = x_item < Blocking<T>::x_columns && channel < grid.channels;
    brings_dy = dy_item >= 0 && filter < grid.filters;
    x_at = x_item % Blocking<T>::x_width - conv.pad_w;
    dy_at = dy_item & (Blocking<T>::dy_width - 1);
    const View<const T>& out = conv.dy.dy;
    const int h = row * winograd_tile - conv.pad_h, w = column * Blocking<T>::dy_width + x_at;
    x = conv.x.data + (n * conv.x.pitch + (std::int64_t{group} * grid.channels + channel) * conv.x.plane() +
                       std::int64_t{h} * conv.x.w + w);
    const std::int64_t at = (std::int64_t{group} * grid.filters + filter) * out.plane() +
                            std::int64_t{row} * winograd_tile * out.w + column * Blocking<T>::dy_width + dy_at;
    dy = out.data + (n * out.pitch + at);
    mask = masked ? conv.dy.mask.data + (n * conv.dy.mask.pitch + at) : nullptr;
    find_rows(conv);
  }

  /// There are fewer columns of dy than threads. The last threads load them, so that all warps have a share.
  __device__ static int x_item_of() { return static_cast<int>(threadIdx.x); }
  __device__ static int dy_item_of() {
    return static_cast<int>(threadIdx.x) - (Blocking<T>::threads - Blocking<T>::dy_columns);
  }

  __device__ void find_rows(const WinogradWeights<T>& conv) {
    const bool exists = n < conv.x.n;
    const int h = row * winograd_tile;
    x_inside = exists && brings_x ? rows_inside(h - conv.pad_h, winograd_patch, conv.x.h) : 0;
    dy_inside = exists && brings_dy ? rows_inside(h, winograd_tile, conv.dy.dy.h) : 0;
  }

  /// Loads the columns of a pair, 0 outside of the planes, and advances to the next pair.
  __device__ void load(const WinogradWeights<T>& conv, const Grid& grid, T (&d)[winograd_patch], T (&y)[winograd_tile],
                       T (&m)[winograd_tile]) {
    const int w = column * Blocking<T>::dy_width;
    const unsigned x_rows = static_cast<unsigned>(w + x_at) < static_cast<unsigned>(conv.x.w) ? x_inside : 0;
    const unsigned dy_rows = w + dy_at < conv.dy.dy.w ? dy_inside : 0;
    const auto x_down = static_cast<unsigned>(conv.x.w), dy_down = static_cast<unsigned>(conv.dy.dy.w);
#pragma unroll
    for (unsigned r = 0; r < winograd_patch; ++r) d[r] = (x_rows >> r & 1U) != 0 ? x[std::uint64_t{x_down} * r] : T(0);
#pragma unroll
    for (unsigned r = 0; r < winograd_tile; ++r) {
      const bool there = (dy_rows >> r & 1U) != 0;
      y[r] = there ? dy[std::uint64_t{dy_down} * r] : T(0);
      if (masked) m[r] = there ? mask[std::uint64_t{dy_down} * r] : T(0);
    }
    x += Blocking<T>::dy_width;
    dy += Blocking<T>::dy_width;
    if (masked) mask += Blocking<T>::dy_width;
    if (++column < grid.pair_columns) return;
    column = 0;
    x += grid.x_row;
    dy += grid.dy_row;
    if (masked) mask += grid.dy_row;
    if (++row == grid.pair_rows) {
      row = 0;
      ++n;
      x += grid.x_image;
      dy += grid.dy_image;
      if (masked) mask += grid.mask_image;
    }
    find_rows(conv);
  }
};

/// A step's buffers in shared memory. The order of columns: row of the patch, channel or filter, column. The order of
/// patches and tiles: tile of the pair, position, channel or filter.
template <class T>
struct Buffers {
  T *patches, *tiles, *columns, *dy_columns;

  __device__ Buffers(T* shared, int half) {
    patches = shared + half * Blocking<T>::step;
    tiles = patches + Blocking<T>::step_patches;
    columns = tiles + Blocking<T>::step_tiles;
    dy_columns = columns + Blocking<T>::step_columns;
  }
};

/// The place of a tile's quartet of columns of dy among the two quartets of a filter. In a fixed order, a warp's
/// quartets of one tile, 8 elements apart, would share half of the banks.
__device__ inline int quartet_place(int tile, int filter) { return tile ^ (filter >> 2 & 1); }

/// Transforms the columns that a thread has loaded and stores them for the transform of rows.
template <class T, bool masked>
__device__ void put_columns(const T (&d)[winograd_patch], T (&y)[winograd_tile], const T (&m)[winograd_tile],
                            const Buffers<T>& to) {
  const int x_item = Columns<T, masked>::x_item_of(), dy_item = Columns<T, masked>::dy_item_of();
  T v[winograd_patch];
  if (x_item < Blocking<T>::x_columns) {
    winograd_input(d, v);
#pragma unroll
    for (int r = 0; r < winograd_patch; ++r) to.columns[r * Blocking<T>::x_columns + x_item] = v[r];
  }
  if (dy_item >= 0) {
    if (masked)
      for (int r = 0; r < winograd_tile; ++r) y[r] = m[r] > T(0) ? y[r] : T(0);
    winograd_spread(y, v);
    const int filter = dy_item / Blocking<T>::dy_width, column = dy_item % Blocking<T>::dy_width;
    const int place = filter * Blocking<T>::dy_width + quartet_place(column / winograd_tile, filter) * winograd_tile +
                      column % winograd_tile;
#pragma unroll
    for (int r = 0; r < winograd_patch; ++r) to.dy_columns[r * Blocking<T>::dy_columns + place] = v[r];
  }
}

/// Transforms a row of a patch and a row of a tile, whose columns are transformed already.
template <class T>
__device__ void put_rows(const Buffers<T>& from, const Buffers<T>& to) {
  const int item = static_cast<int>(threadIdx.x);
  T v[winograd_patch];
  if (Blocking<T>::is_x_row(item)) {
    const int channel = item % Blocking<T>::channels, line = item / Blocking<T>::channels;
    const int tile = line / winograd_patch, row = line % winograd_patch;
    T d[winograd_patch];
    const T* const columns =
        from.columns + (row * Blocking<T>::channels + channel) * Blocking<T>::x_width + tile * winograd_tile;
#pragma unroll
    for (int s = 0; s < winograd_patch; s += 2) {
      const Pack<T, 2> pack = load_pack<2>(columns + s);
      d[s] = pack.v[0];
      d[s + 1] = pack.v[1];
    }
    winograd_input(d, v);
#pragma unroll
    for (int s = 0; s < winograd_patch; ++s)
      to.patches[(line * winograd_patch + s) * Blocking<T>::channels + channel] = v[s];
  }
  if (Blocking<T>::is_dy_row(item)) {
    const int filter = item % Blocking<T>::filters, line = item / Blocking<T>::filters;
    const int tile = line / winograd_patch, row = line % winograd_patch;
    constexpr int width = Blocking<T>::width;
    T y[winograd_tile];
    const T* const columns = from.dy_columns + (row * Blocking<T>::filters + filter) * Blocking<T>::dy_width +
                             quartet_place(tile, filter) * winograd_tile;
#pragma unroll
    for (int s = 0; s < winograd_tile; s += width) {
      const Pack<T, width> pack = load_pack<width>(columns + s);
      for (int i = 0; i < width; ++i) y[s + i] = pack.v[i];
    }
    winograd_spread(y, v);
#pragma unroll
    for (int s = 0; s < winograd_patch; ++s)
      to.tiles[(line * winograd_patch + s) * Blocking<T>::filters + filter] = v[s];
  }
}

/// Transforms the 36 sums of one filter and channel back.
template <class T>
__device__ void put_filter(const T* sums, int stride, T* to) {
  T half[3][winograd_patch];  // G^T M
#pragma unroll
  for (int s = 0; s < winograd_patch; ++s) {
    T m[winograd_patch], column[3];
#pragma unroll
    for (int r = 0; r < winograd_patch; ++r) m[r] = sums[(r * winograd_patch + s) * stride];
    winograd_gradient(m, column);
#pragma unroll
    for (int r = 0; r < 3; ++r) half[r][s] = column[r];
  }
#pragma unroll
  for (int r = 0; r < 3; ++r) {
    T g[3];
    winograd_gradient(half[r], g);
#pragma unroll
    for (int s = 0; s < 3; ++s) to[r * 3 + s] = g[s];
  }
}

template <class T, bool masked>
__global__ void __launch_bounds__(Blocking<T>::threads)
    winograd_4x4_weights_kernel(WinogradWeights<T> conv, Grid grid) {
  LAMINA_DYNAMIC_SHARED(T, shared);
  const WinogradLane place;
  const int group = static_cast<int>(blockIdx.y), block = static_cast<int>(blockIdx.x);
  const int first_filter = block % grid.filter_blocks * Blocking<T>::filters;
  const int first_channel = block / grid.filter_blocks % grid.channel_blocks * Blocking<T>::channels;
  const int range = block / grid.filter_blocks / grid.channel_blocks;
  const std::int64_t first_pair = range * grid.range_pairs, left = grid.pairs - first_pair;
  const int steps = static_cast<int>(left < grid.range_pairs ? left : grid.range_pairs);

  WinogradSums<T> sums = {};
  T d[winograd_patch], y[winograd_tile], m[winograd_tile];
  Columns<T, masked> columns(conv, grid, group, first_filter, first_channel, first_pair);
  const Buffers<T> even(shared, 0), odd(shared, 1);
  columns.load(conv, grid, d, y, m);
  put_columns<T, masked>(d, y, m, even);
  columns.load(conv, grid, d, y, m);
  __syncthreads();
  put_rows(even, even);
  put_columns<T, masked>(d, y, m, odd);
  __syncthreads();
  for (int step = 0; step < steps; ++step) {
    const Buffers<T> now(shared, step % 2), next(shared, 1 - step % 2);
    columns.load(conv, grid, d, y, m);
    winograd_multiply<Blocking<T>::pair>(place, now.tiles, now.patches, sums);
    if (step + 1 < steps) {
      put_rows(next, next);
      put_columns<T, masked>(d, y, m, now);
    }
    __syncthreads();
  }

  const int item = static_cast<int>(threadIdx.x);
  T* const made = shared + Blocking<T>::meeting;                    // weights in the order slot, channel, tap
  const std::int64_t weights = std::int64_t{grid.channels} * taps;  // weights of a filter
  T* const dw = conv.dw + (range * std::int64_t{conv.groups} + group) * grid.filters * weights +
                std::int64_t{first_channel} * taps;
  const int left_weights = min(grid.channels - first_channel, Blocking<T>::channels) * taps;
#pragma unroll
  for (int part = 0; part < 2 * Blocking<T>::width; part += 2) {
    winograd_meet(place, sums, part, shared);
    __syncthreads();
    if (item < Blocking<T>::slots * Blocking<T>::channels)
      put_filter(shared + item, Blocking<T>::slots * Blocking<T>::channels, made + item * taps);
    __syncthreads();
    const int slot = item / Blocking<T>::slot_threads, weight = item % Blocking<T>::slot_threads;
    const int filter = first_filter + winograd_row<T>(part, slot);
    if (filter >= grid.filters) continue;
    const T* const from = made + (slot * Blocking<T>::slot_weights + weight);
    T* const to = dw + (filter * weights + weight);
#pragma unroll
    for (int i = 0; i < Blocking<T>::slot_weights; i += Blocking<T>::slot_threads)
      if (weight + i < left_weights) to[i] = conv.adds ? to[i] + from[i] : from[i];
  }
}

int count_of(int size, int unit) { return divide_up(size, unit); }

template <class T>
Grid grid_of(const WinogradWeights<T>& conv, int ranges) {
  const View<const T>&x = conv.x, &dy = conv.dy.dy;
  Grid grid{};
  grid.filters = dy.c / conv.groups;
  grid.channels = x.c / conv.groups;
  grid.filter_blocks = count_of(grid.filters, Blocking<T>::filters);
  grid.channel_blocks = count_of(grid.channels, Blocking<T>::channels);
  grid.pair_rows = count_of(dy.h, winograd_tile);
  grid.pair_columns = count_of(dy.w, Blocking<T>::dy_width);
  grid.pairs = std::int64_t{dy.n} * grid.pair_rows * grid.pair_columns;
  grid.range_pairs = divide_up(grid.pairs, ranges);
  const std::int64_t walked = std::int64_t{grid.pair_columns} * Blocking<T>::dy_width;
  grid.x_row = std::int64_t{winograd_tile} * x.w - walked;
  grid.dy_row = std::int64_t{winograd_tile} * dy.w - walked;
  const std::int64_t rows = std::int64_t{grid.pair_rows} * winograd_tile;
  grid.x_image = x.pitch - rows * x.w;
  grid.dy_image = dy.pitch - rows * dy.w;
  grid.mask_image = conv.dy.mask.pitch - rows * dy.w;
  return grid;
}

/// A block's cycles by the machine code for sm_90: for a pair of tiles, in addition for a row of pairs, and before and
/// after all pairs.
constexpr int pair_cycles = 1161, row_cycles = 171, end_cycles = 7000;

}  // namespace

template <class T>
WinogradRanges winograd_4x4_weights_ranges(const WinogradWeights<T>& conv) {
  const Grid grid = grid_of(conv, 1);
  const int step_cycles = pair_cycles + row_cycles / grid.pair_columns;
  const ConvTileCost costs[1] = {{ConvTile::automatic, 32, 32 * taps, 1, step_cycles, end_cycles, 1}};
  const std::int64_t weights = std::int64_t{grid.channels} * taps;
  const ConvSchedule cut =
      conv_schedule_for({grid.filters, weights, conv.groups, grid.pairs, 16, 256}, costs, ConvTile::automatic, 0);
  return {cut.ranges, cut.cycles};
}

template <class T>
std::size_t winograd_4x4_weights_bytes(const WinogradWeights<T>& conv, int ranges) {
  if (ranges == 0) ranges = winograd_4x4_weights_ranges(conv).count;
  if (ranges == 1) return 0;
  return static_cast<std::size_t>(ranges) * static_cast<std::size_t>(conv.dy.dy.c) *
         static_cast<std::size_t>(conv.x.c / conv.groups) * taps * sizeof(T);
}

template <class T>
void winograd_4x4_weights(Stream stream, const WinogradWeights<T>& conv, T* partial, int ranges) {
  if (ranges == 0) ranges = winograd_4x4_weights_ranges(conv).count;
  const Grid grid = grid_of(conv, ranges);
  WinogradWeights<T> made = conv;
  if (ranges > 1) {
    made.dw = partial;
    made.adds = false;
  }
  const std::int64_t blocks = std::int64_t{grid.filter_blocks} * grid.channel_blocks * ranges;
  const dim3 all(static_cast<unsigned>(blocks), static_cast<unsigned>(conv.groups));
  const std::size_t bytes = Blocking<T>::shared * sizeof(T);
  if (conv.dy.mask.data != nullptr)
    launch(LAMINA_KERNEL(winograd_4x4_weights_kernel<T, true>), all, Blocking<T>::threads, bytes, stream, made, grid);
  else
    launch(LAMINA_KERNEL(winograd_4x4_weights_kernel<T, false>), all, Blocking<T>::threads, bytes, stream, made, grid);
  conv_add_weight_ranges(stream, partial, ranges, conv.groups, grid.filters * grid.channels * taps, conv.dw, conv.adds);
}

#define LAMINA_INSTANTIATE(T)                                                      \
  template WinogradRanges winograd_4x4_weights_ranges(const WinogradWeights<T>&);  \
  template std::size_t winograd_4x4_weights_bytes(const WinogradWeights<T>&, int); \
  template void winograd_4x4_weights(Stream, const WinogradWeights<T>&, T*, int);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
