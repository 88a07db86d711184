// Convolution by Winograd's F(4x4, 3x3), fused: only transformed filters go through global memory.
//
//   Y = A^T [ sum over channels of (G g G^T) * (B^T d B) ] A        g: 3x3 filter, d: 6x6 patch of x, Y: 4x4 tile of y
//
// A block computes 32 filters x 32 tiles (f64: 16 x 16), where tiles are numbered through all images. Each of its 12
// warps owns 3 of the 36 positions, with the whole sum over channels in registers. Channels come two by two,
// through a pipeline with one barrier per step. At any time
//
// clang-format off
//   step i + 2   x is loaded, one column of a patch per thread, and transformed along the column  -> columns
//   step i + 1   is transformed along rows, and its filters are loaded                            -> patches, filters
//   step i       is multiplied
// clang-format on
//
// At the end the 36 positions of a tile meet in shared memory, a quarter of the filters at a time.

#include "conv_winograd_4x4.h"

#include "kernels/common/packs.h"
#include "winograd_block.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// How a block is partitioned: its rows are filters, its columns are tiles.
template <class T>
struct Blocking : WinogradBlock<T> {
  using Block = WinogradBlock<T>;
  static constexpr int filters = Block::rows, tiles = Block::columns;
  static constexpr int channels = 2;                                // channels of a step
  static constexpr int staged = channels * tiles * winograd_patch;  // columns, or rows, of a step's patches
  static constexpr int column_pitch = tiles + winograd_patch;       // spreads a warp's columns over the banks
  static constexpr int step_filters = channels * winograd_positions * filters;
  static constexpr int step_patches = channels * winograd_positions * tiles;
  static constexpr int step_columns = channels * winograd_positions * column_pitch;
  static constexpr int shared = 2 * (step_filters + step_patches + step_columns);
  static constexpr int filter_packs = step_filters / 2;
  static constexpr int thread_packs = divide_up(filter_packs, Block::threads);
  /// These conditions are known to the compiler if no thread is idle.
  __device__ static bool is_staged(int item) { return staged == Block::threads || item < staged; }
  __device__ static bool is_pack(int round, int pack) {
    return (round + 1) * Block::threads <= filter_packs || pack < filter_packs;
  }
  static_assert(staged <= Block::threads, "too few threads");
  static_assert(shared * sizeof(T) <= 65536, "more shared memory than a block of compute capability 7.5 has");
  static_assert(winograd_positions * Block::slots * tiles <= 2 * (step_filters + step_patches), "tiles do not fit");
};

LAMINA_HOST_DEVICE constexpr int round_up(int count, int unit) { return divide_up(count, unit) * unit; }

// ---- filters --------------------------------------------------------------------------------------------------------

/// Transformed filters are stored as the blocks of the convolution read them, in the order group, block of filters,
/// channel, position, filter. Entries beyond the last filter or channel are 0. One thread has one filter and channel.
template <class T>
__global__ void winograd_4x4_filter_kernel(WinogradFilters f, FoldedNorm<T> norm, const T* w, T* to) {
  const int outputs = round_up(f.outputs, Blocking<T>::filters), inputs = round_up(f.inputs, Blocking<T>::channels);
  const std::int64_t count = std::int64_t{f.groups} * outputs * inputs;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const std::int64_t block = i / Blocking<T>::filters / inputs;  // block of filters, over all groups
    const int lane = static_cast<int>(i % Blocking<T>::filters);
    const int channel = static_cast<int>(i / Blocking<T>::filters % inputs);
    const std::int64_t group = block / (outputs / Blocking<T>::filters);
    const int filter = static_cast<int>(block % (outputs / Blocking<T>::filters)) * Blocking<T>::filters + lane;
    T g[3][3] = {};
    if (filter < f.outputs && channel < f.inputs) {
      const T* const from = w + (f.transposed ? (group * f.inputs + channel) * f.outputs + filter
                                              : (group * f.outputs + filter) * f.inputs + channel) *
                                    9;
      for (int r = 0; r < 3; ++r)
        for (int s = 0; s < 3; ++s) g[r][s] = from[f.transposed ? 8 - 3 * r - s : 3 * r + s];
      if (norm.scale != nullptr) {
        const double factor = norm.factor(static_cast<int>(group) * f.outputs + filter);
        for (auto& row : g)
          for (T& tap : row) tap = static_cast<T>(static_cast<double>(tap) * factor);
      }
    }
    T half[3][winograd_patch];  // (G g)^T; then G g G^T, one row at a time
    for (int s = 0; s < 3; ++s) winograd_filter({g[0][s], g[1][s], g[2][s]}, half[s]);
    T* const out = to + (block * inputs + channel) * winograd_positions * Blocking<T>::filters + lane;
    for (int a = 0; a < winograd_patch; ++a) {
      T u[winograd_patch];
      winograd_filter({half[0][a], half[1][a], half[2][a]}, u);
      for (int b = 0; b < winograd_patch; ++b) out[(a * winograd_patch + b) * Blocking<T>::filters] = u[b];
    }
  }
}

// ---- convolution ----------------------------------------------------------------------------------------------------

/// The numbers that the blocks of a launch share, besides the tensors.
struct Grid {
  int filter_blocks, tile_rows, tile_columns;
  bool packed;  // whether a row of a tile of y may be written in packs
};

/// A tile of y by its number.
struct Tile {
  int n, row, column;

  __device__ Tile(const Grid& grid, std::int64_t number)
      : n(static_cast<int>(number / grid.tile_columns / grid.tile_rows)),
        row(static_cast<int>(number / grid.tile_columns % grid.tile_rows)),
        column(static_cast<int>(number % grid.tile_columns)) {}
};

/// The column of a patch that this thread loads, in one channel of every step.
template <class T, bool masked>
struct PatchColumn {
  unsigned inside = 0;  // bit r: row r of the patch is in the image
  int channel;          // channel of the group in the next step
  const T* x;           // topmost element, inside or not
  const T* mask;

  __device__ PatchColumn(const WinogradConv<T>& conv, const Grid& grid, std::int64_t first_tile, int group) {
    const int item = static_cast<int>(threadIdx.x);
    const int s = item % winograd_patch;
    channel = item / (winograd_patch * Blocking<T>::tiles);
    const Tile tile(grid, first_tile + item / winograd_patch % Blocking<T>::tiles);
    const int h = tile.row * winograd_tile - conv.pad_h, w = tile.column * winograd_tile - conv.pad_w + s;
    if (item < Blocking<T>::staged && tile.n < conv.x.n && w >= 0 && w < conv.x.w)
      for (int r = 0; r < winograd_patch; ++r)
        if (h + r >= 0 && h + r < conv.x.h) inside |= 1U << r;
    const std::int64_t at =
        (std::int64_t{group} * conv.filters.inputs + channel) * conv.x.plane() + std::int64_t{h} * conv.x.w + w;
    x = conv.x.data + (tile.n * conv.x.pitch + at);
    mask = masked ? conv.mask.data + (tile.n * conv.mask.pitch + at) : nullptr;
  }

  /// Loads the column of the next step. It is 0 outside of the image and beyond the last channel.
  __device__ void load(const WinogradConv<T>& conv, T (&d)[winograd_patch], T (&m)[winograd_patch]) {
    const unsigned rows = channel < conv.filters.inputs ? inside : 0;
    const std::int64_t step = Blocking<T>::channels * conv.x.plane(), down = conv.x.w;
    const T* x_row = x;
    const T* mask_row = mask;
#pragma unroll
    for (int r = 0; r < winograd_patch; ++r) {
      const bool there = (rows >> r & 1U) != 0;
      d[r] = there ? *x_row : T(0);
      x_row += down;
      if (masked) m[r] = there ? *mask_row : T(0);
      if (masked) mask_row += down;
    }
    channel += Blocking<T>::channels;
    x += step;
    if (masked) mask += step;
  }
};

/// Transforms a column of a patch and stores it for the transform of rows.
template <class T, bool masked>
__device__ void put_column(T (&d)[winograd_patch], const T (&mask)[winograd_patch], T* columns) {
  const int item = static_cast<int>(threadIdx.x);
  if (!Blocking<T>::is_staged(item)) return;
  if (masked)
    for (int r = 0; r < winograd_patch; ++r) d[r] = mask[r] > T(0) ? d[r] : T(0);
  T v[winograd_patch];
  winograd_input(d, v);
  const int s = item % winograd_patch, tile = item / winograd_patch % Blocking<T>::tiles;
  const int channel = item / (winograd_patch * Blocking<T>::tiles);
  T* const to = columns + (channel * winograd_positions + s) * Blocking<T>::column_pitch + tile;
#pragma unroll
  for (int r = 0; r < winograd_patch; ++r) to[r * winograd_patch * Blocking<T>::column_pitch] = v[r];
}

/// Transforms a row of a patch whose columns are transformed: channel, position, tile.
template <class T>
__device__ void put_row(const T* columns, T* patches) {
  const int item = static_cast<int>(threadIdx.x);
  if (!Blocking<T>::is_staged(item)) return;
  const int tile = item % Blocking<T>::tiles, line = item / Blocking<T>::tiles;  // a row of a channel
  T d[winograd_patch], v[winograd_patch];
#pragma unroll
  for (int s = 0; s < winograd_patch; ++s)
    d[s] = columns[(line * winograd_patch + s) * Blocking<T>::column_pitch + tile];
  winograd_input(d, v);
#pragma unroll
  for (int s = 0; s < winograd_patch; ++s) patches[(line * winograd_patch + s) * Blocking<T>::tiles + tile] = v[s];
}

/// The part of a step's filters that this thread copies to shared memory, in the layout of global memory.
template <class T>
struct FilterPacks {
  Pack<T, 2> packs[Blocking<T>::thread_packs];

  __device__ void load(const T* from) {
#pragma unroll
    for (int i = 0; i < Blocking<T>::thread_packs; ++i) {
      const int pack = i * Blocking<T>::threads + static_cast<int>(threadIdx.x);
      if (Blocking<T>::is_pack(i, pack)) packs[i] = load_pack<2>(from + 2 * pack);
    }
  }
  __device__ void store(T* to) const {
#pragma unroll
    for (int i = 0; i < Blocking<T>::thread_packs; ++i) {
      const int pack = i * Blocking<T>::threads + static_cast<int>(threadIdx.x);
      if (Blocking<T>::is_pack(i, pack)) store_pack(to + 2 * pack, packs[i]);
    }
  }
};

/// Transforms the 36 sums of one filter and tile back, and writes the part of the tile that is inside y.
template <class T>
__device__ void put_tile(const WinogradConv<T>& conv, const Grid& grid, const Tile& tile, int channel, const T* sums,
                         int stride) {
  T half[winograd_tile][winograd_patch];  // A^T M
#pragma unroll
  for (int s = 0; s < winograd_patch; ++s) {
    T m[winograd_patch], column[winograd_tile];
#pragma unroll
    for (int r = 0; r < winograd_patch; ++r) m[r] = sums[(r * winograd_patch + s) * stride];
    winograd_output(m, column);
#pragma unroll
    for (int r = 0; r < winograd_tile; ++r) half[r][s] = column[r];
  }
  const T bias = conv.bias != nullptr ? conv.bias[channel] : T(0);
  const int q = tile.column * winograd_tile;
#pragma unroll
  for (int r = 0; r < winograd_tile; ++r) {
    const int p = tile.row * winograd_tile + r;
    if (p >= conv.y.h) return;
    T y[winograd_tile];
    winograd_output(half[r], y);
#pragma unroll
    for (int s = 0; s < winograd_tile; ++s) y[s] += bias;
    T* const to = conv.y.at(tile.n, channel) + std::int64_t{p} * conv.y.w + q;
    if (grid.packed) {
      constexpr int width = Blocking<T>::width;
#pragma unroll
      for (int s = 0; s < winograd_tile; s += width) {
        Pack<T, width> pack;
        for (int i = 0; i < width; ++i) pack.v[i] = y[s + i];
        put_pack(to + s, pack, conv.adds, conv.relu);
      }
    } else {
#pragma unroll
      for (int s = 0; s < winograd_tile; ++s)
        if (q + s < conv.y.w) put_pack(to + s, Pack<T, 1>{{y[s]}}, conv.adds, conv.relu);
    }
  }
}

template <class T, bool masked>
__global__ void __launch_bounds__(Blocking<T>::threads) winograd_4x4_kernel(WinogradConv<T> conv, Grid grid) {
  LAMINA_DYNAMIC_SHARED(T, shared);
  T* const filters = shared;
  T* const patches = filters + 2 * Blocking<T>::step_filters;
  T* const columns = patches + 2 * Blocking<T>::step_patches;
  const WinogradLane place;
  const int group = static_cast<int>(blockIdx.y);
  const int filter_block = static_cast<int>(blockIdx.x) % grid.filter_blocks;
  const std::int64_t first_tile = std::int64_t{static_cast<int>(blockIdx.x) / grid.filter_blocks} * Blocking<T>::tiles;
  const int steps = divide_up(conv.filters.inputs, Blocking<T>::channels);

  WinogradSums<T> sums = {};
  T d[winograd_patch], mask[winograd_patch];
  PatchColumn<T, masked> column(conv, grid, first_tile, group);
  FilterPacks<T> packs;
  const T* next_filters =
      conv.transformed + (std::int64_t{group} * grid.filter_blocks + filter_block) * steps * Blocking<T>::step_filters;

  column.load(conv, d, mask);
  put_column<T, masked>(d, mask, columns);
  column.load(conv, d, mask);
  packs.load(next_filters);
  packs.store(filters);
  __syncthreads();
  put_row(columns, patches);
  put_column<T, masked>(d, mask, columns + Blocking<T>::step_columns);
  __syncthreads();
  for (int step = 0; step < steps; ++step) {
    const int now = step % 2, next = 1 - now;
    const bool more = step + 1 < steps;
    next_filters += Blocking<T>::step_filters;
    column.load(conv, d, mask);
    if (more) packs.load(next_filters);
    winograd_multiply<Blocking<T>::channels>(place, filters + now * Blocking<T>::step_filters,
                                             patches + now * Blocking<T>::step_patches, sums);
    if (more) {
      packs.store(filters + next * Blocking<T>::step_filters);
      put_row(columns + next * Blocking<T>::step_columns, patches + next * Blocking<T>::step_patches);
      put_column<T, masked>(d, mask, columns + now * Blocking<T>::step_columns);
    }
    __syncthreads();
  }

  const int item = static_cast<int>(threadIdx.x);
  const int slot = item / Blocking<T>::tiles;
  const Tile tile(grid, first_tile + item % Blocking<T>::tiles);
#pragma unroll
  for (int part = 0; part < 2 * Blocking<T>::width; part += 2) {
    winograd_meet(place, sums, part, shared);
    __syncthreads();
    const int filter = filter_block * Blocking<T>::filters + winograd_row<T>(part, slot);
    if (slot < Blocking<T>::slots && filter < conv.filters.outputs && tile.n < conv.y.n)
      put_tile(conv, grid, tile, group * conv.filters.outputs + filter, shared + item,
               Blocking<T>::slots * Blocking<T>::tiles);
    __syncthreads();
  }
}

template <class T>
bool takes_packs(const View<T>& y) {
  return y.w % winograd_tile == 0 && y.pitch % Blocking<T>::width == 0 &&
         reinterpret_cast<std::uintptr_t>(y.data) % 16 == 0;
}

}  // namespace

template <class T>
std::int64_t winograd_4x4_filter_count(const WinogradFilters& f) {
  return std::int64_t{f.groups} * round_up(f.outputs, Blocking<T>::filters) *
         round_up(f.inputs, Blocking<T>::channels) * winograd_positions;
}

template <class T>
void winograd_4x4_filters(Stream stream, const WinogradFilters& f, const T* w, T* to, const FoldedNorm<T>& norm) {
  constexpr int threads = 128;
  launch(LAMINA_KERNEL(winograd_4x4_filter_kernel<T>),
         blocks_for(winograd_4x4_filter_count<T>(f) / winograd_positions, threads), threads, 0, stream, f, norm, w, to);
}

template <class T>
void winograd_4x4(Stream stream, const WinogradConv<T>& conv) {
  const Grid grid = {round_up(conv.filters.outputs, Blocking<T>::filters) / Blocking<T>::filters,
                     divide_up(conv.y.h, winograd_tile), divide_up(conv.y.w, winograd_tile), takes_packs(conv.y)};
  const std::int64_t tiles = std::int64_t{conv.y.n} * grid.tile_rows * grid.tile_columns;
  const std::int64_t blocks = divide_up(tiles, Blocking<T>::tiles) * grid.filter_blocks;
  const dim3 all(static_cast<unsigned>(blocks), static_cast<unsigned>(conv.filters.groups));
  const std::size_t bytes = Blocking<T>::shared * sizeof(T);
  if (conv.mask.data != nullptr)
    launch(LAMINA_KERNEL(winograd_4x4_kernel<T, true>), all, Blocking<T>::threads, bytes, stream, conv, grid);
  else
    launch(LAMINA_KERNEL(winograd_4x4_kernel<T, false>), all, Blocking<T>::threads, bytes, stream, conv, grid);
}

// The cost on a large device, by the model of docs/algorithms/winograd_4x4.md, in f32.

std::int64_t winograd_4x4_cycles(const WinogradFilters& f, int images, int h, int w) {
  constexpr std::int64_t step = 1014, ends = 5500;  // cycles of a block, alone on its multiprocessor
  const std::int64_t tiles = std::int64_t{images} * divide_up(h, winograd_tile) * divide_up(w, winograd_tile);
  const std::int64_t blocks =
      divide_up(tiles, Blocking<float>::tiles) * divide_up(f.outputs, Blocking<float>::filters) * f.groups;
  return divide_up(blocks, large_device) * (divide_up(f.inputs, Blocking<float>::channels) * step + ends);
}

std::int64_t winograd_4x4_filter_cycles(const WinogradFilters& f) {
  // cycles of a launch; bytes per cycle of a multiprocessor
  constexpr std::int64_t launch = 2000, bytes_per_cycle = 22;
  constexpr std::int64_t bytes = (9 + 36) * 4;  // bytes of a filter's channel, read and written
  return launch + std::int64_t{f.groups} * f.outputs * f.inputs * bytes / (bytes_per_cycle * large_device);
}

#define LAMINA_INSTANTIATE(T)                                                                             \
  template std::int64_t winograd_4x4_filter_count<T>(const WinogradFilters&);                             \
  template void winograd_4x4_filters(Stream, const WinogradFilters&, const T*, T*, const FoldedNorm<T>&); \
  template void winograd_4x4(Stream, const WinogradConv<T>&);
LAMINA_FOR_FLOATS(LAMINA_INSTANTIATE)

}  // namespace lamina::LAMINA_CUDA_SPACE
