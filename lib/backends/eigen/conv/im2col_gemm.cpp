// Convolution as matrix products whose second factor, the columns, is packed from the image block by block.
//
// forward           y = w * columns of x
// backward_data     dx at the positions of one residue modulo the stride = weights * columns of dy, for the taps that
//                   meet it
// backward_params   see weight_gradient_product.h

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "../gemm/column_product.h"
#include "batch_norm_fold.h"
#include "conv.h"
#include "few_channels.h"
#include "subpixel.h"
#include "weight_gradient_product.h"

namespace lamina::eigen {
namespace {

std::vector<Tap> forward_taps(const Conv& op) {
  std::vector<Tap> taps;
  for (int r = 0; r < op.kernel.h; ++r) {
    for (int s = 0; s < op.kernel.w; ++s) taps.push_back({r * op.dilation.h - op.pad.h, s * op.dilation.w - op.pad.w});
  }
  return taps;
}

Columns forward_columns(const ConvProblem& c) {
  return Columns({c.x.n, c.group_channels(), c.x.h, c.x.w}, c.y.h, c.y.w, c.op.stride, forward_taps(c.op), false);
}

// ---- forward ----

template <class T>
Lowered::Step forward_step(const ConvProblem& c, Pool& pool, const MicroKernels<T>& kernels) {
  ColumnProduct<T> product(forward_columns(c), c.group_filters(), pool.threads(), kernels);
  const std::size_t part_bytes = product.workspace_bytes();
  const std::size_t bytes = part_bytes * static_cast<std::size_t>(product.parts());
  return step(
      {Pass::forward}, "im2col_gemm",
      [c, &pool, product = std::move(product), part_bytes](const Args& args) {
        const std::int64_t x_group = c.group_channels() * c.x.plane(), y_group = c.group_filters() * c.y.plane();
        const Filters<T> filters = filters_of<T>(c, args);
        place_addend(c, args, pool);
        pool.run([&](int part) {
          void* const workspace = static_cast<std::byte*>(args.workspace) + static_cast<std::size_t>(part) * part_bytes;
          for (int g = 0; g < c.op.groups; ++g) {
            product.run(part,
                        {.a = filters.w + g * product.rows() * product.depth(),
                         .lda = product.depth(),
                         .source = {args.x[0].as<T>() + g * x_group, args.x[0].pitch},
                         .output = {args.y.as<T>() + g * y_group, args.y.pitch, c.y.plane(), c.y.w, c.y.w, 1},
                         .scale = filters.scale == nullptr ? nullptr : filters.scale + g * c.group_filters(),
                         .bias = filters.bias == nullptr ? nullptr : filters.bias + g * c.group_filters(),
                         .add = c.add_y,
                         .relu = c.relu,
                         .non_temporal = wants_non_temporal<T>(c.y)},
                        workspace);
          }
        });
      },
      bytes);
}

// ---- backward_data ----

/// A tap along one axis that meets the positions of one residue: its index in the kernel and what it reads of dy.
struct AxisTap {
  int index, offset;
};
std::vector<AxisTap> meeting_taps(int residue, int kernel, int stride, int pad, int dilation) {
  std::vector<AxisTap> taps;
  for (int i = 0; i < kernel; ++i) {
    const int above = residue + pad - i * dilation;
    if (above % stride == 0) taps.push_back({i, above / stride});
  }
  return taps;
}

/// The positions of x of one residue.
struct Residue {
  int h, w;
  std::vector<int> taps;    // indices into a kernel's plane
  std::int64_t weights_at;  // where its weights start among the transposed ones of a group,
  std::int64_t weights_ld;  // and so far from channel to channel
};

/// A product that is written at once: of one residue, or of two that lie side by side.
template <class T>
struct ResidueProduct {
  std::size_t first, last;  // residues
  ColumnProduct<T> product;
};

/// to[k][t] = from[k * stride][taps[t]] for k in [0, filters), with the number of taps known or (0) not.
template <int Taps, class T>
void gather_taps(T* to, const T* from, std::int64_t stride, std::int64_t filters, std::span<const int> taps) {
  std::array<int, Taps == 0 ? 1 : Taps> known;
  if constexpr (Taps != 0) std::copy_n(taps.data(), Taps, known.begin());
  for (std::int64_t k = 0; k < filters; ++k, from += stride) {
    if constexpr (Taps != 0) {
      for (int tap : known) *to++ = from[tap];
    } else {
      for (int tap : taps) *to++ = from[tap];
    }
  }
}

/// Weights of one group, transposed for every residue: to[weights_at + c * weights_ld + k * taps + t] =
/// w[k][c][taps[t]] for k in [first, last). Some filters and channels at a time, so that both sides are runs of some
/// cache lines and each weight comes from memory once.
template <class T>
void transpose_weights(const ConvProblem& c, const std::vector<Residue>& residues, const MicroKernels<T>& kernels,
                       const T* w, T* to, std::int64_t first, std::int64_t last) {
  constexpr std::int64_t block = 32;
  const std::int64_t kernel = std::int64_t{c.op.kernel.h} * c.op.kernel.w, channels = c.group_channels();
  if (kernel == 1) {
    for (const Residue& residue : residues) {  // one, or none where padding alone is read
      kernels.transpose(to + first, residue.weights_ld, w + first * channels, channels, nullptr, 0, last - first,
                        channels);
    }
    return;
  }
  for (std::int64_t k = first; k < last; k += block) {
    const std::int64_t count = std::min(last - k, block);
    for (std::int64_t c0 = 0; c0 < channels; c0 += block) {
      for (const Residue& residue : residues) {
        const auto taps = static_cast<std::int64_t>(residue.taps.size());
        const auto gather = taps == 1   ? gather_taps<1, T>
                            : taps == 2 ? gather_taps<2, T>
                            : taps == 4 ? gather_taps<4, T>
                                        : gather_taps<0, T>;
        for (std::int64_t channel = c0; channel < std::min(channels, c0 + block); ++channel) {
          gather(to + residue.weights_at + channel * residue.weights_ld + k * taps,
                 w + (k * channels + channel) * kernel, channels * kernel, count, residue.taps);
        }
      }
    }
  }
}

template <class T>
struct BackwardData {
  ConvProblem c;
  const MicroKernels<T>* kernels;
  std::vector<Residue> residues;
  std::vector<ResidueProduct<T>> products;
  std::vector<std::pair<int, int>> untouched;  // residues that no tap meets
  std::int64_t group_weights = 0;
  std::size_t weight_bytes = 0, part_bytes = 0;
  int parts = 0;

  BackwardData(const ConvProblem& problem, int threads, const MicroKernels<T>& set) : c(problem), kernels(&set) {
    const Conv& op = c.op;
    std::vector<Columns> columns;  // of each residue
    for (int h = 0; h < std::min(op.stride.h, c.x.h); ++h) {
      for (int w = 0; w < std::min(op.stride.w, c.x.w); ++w) {
        std::vector<Tap> taps;
        std::vector<int> indices;
        for (const AxisTap& r : meeting_taps(h, op.kernel.h, op.stride.h, op.pad.h, op.dilation.h)) {
          for (const AxisTap& s : meeting_taps(w, op.kernel.w, op.stride.w, op.pad.w, op.dilation.w)) {
            taps.push_back({r.offset, s.offset});
            indices.push_back(r.index * op.kernel.w + s.index);
          }
        }
        if (taps.empty()) {
          untouched.emplace_back(h, w);
          continue;
        }
        // Channels that lie multiples of a quarter page apart would meet in few sets of a cache.
        constexpr std::int64_t quarter_page = 1024 / static_cast<std::int64_t>(sizeof(T));
        const auto depth = static_cast<std::int64_t>(taps.size()) * c.group_filters();
        const std::int64_t ld = depth % quarter_page == 0 ? depth + set.lanes : depth;
        residues.push_back({h, w, std::move(indices), group_weights, ld});
        group_weights += ld * c.group_channels();
        columns.emplace_back(Shape{c.y.n, c.group_filters(), c.y.h, c.y.w}, rows(h), cols(w), 1, taps, c.relu);
      }
    }
    const auto product = [&](std::size_t i, auto... more) {
      return ColumnProduct<T>(columns[i], c.group_channels(), threads, set, more...);
    };
    for (std::size_t i = 0; i < residues.size(); ++i) {
      const Residue& here = residues[i];
      if (op.stride.w == 2 && c.x.w % 2 == 0 && here.w == 0 && i + 1 < residues.size() && residues[i + 1].h == here.h) {
        products.push_back({i, i + 1, product(i + 1, true, std::make_shared<ColumnProduct<T>>(product(i, true)))});
        ++i;
      } else {
        products.push_back({i, i, product(i)});
      }
      part_bytes = std::max(part_bytes, products.back().product.workspace_bytes());
      parts = std::max(parts, products.back().product.parts());
    }
    weight_bytes =
        static_cast<std::size_t>(round_up(group_weights * op.groups * static_cast<std::int64_t>(sizeof(T)), 64));
  }

  int rows(int h) const { return (c.x.h - h + c.op.stride.h - 1) / c.op.stride.h; }
  int cols(int w) const { return (c.x.w - w + c.op.stride.w - 1) / c.op.stride.w; }
  /// Whether zeros lie between the columns of the only product, which then writes them.
  bool fills() const { return !untouched.empty() && residues.size() == 1 && residues[0].h == 0 && residues[0].w == 0; }
  std::size_t workspace_bytes() const { return weight_bytes + part_bytes * static_cast<std::size_t>(parts); }

  void zero_untouched(const Tensor& dx, std::int64_t first_plane, std::int64_t last_plane) const {
    for (std::int64_t plane = first_plane; plane < last_plane; ++plane) {
      T* const to = dx.as<T>() + plane / c.x.c * dx.pitch + plane % c.x.c * c.x.plane();
      for (const auto& [h0, w0] : untouched) {
        for (int h = h0; h < c.x.h; h += c.op.stride.h) {
          for (int w = w0; w < c.x.w; w += c.op.stride.w) to[std::int64_t{h} * c.x.w + w] = T{0};
        }
      }
    }
  }

  void run(const Args& args, Pool& pool) const {
    const Tensor& dx = args.dx[0];
    if (!dx) return;
    T* const weights = static_cast<T*>(args.workspace);
    pool.split(c.group_filters(), 16, [&](std::int64_t first, std::int64_t last) {
      for (int g = 0; g < c.op.groups; ++g) {
        const T* const w = args.w[0].as<T>() + c.weights() / c.op.groups * g;
        transpose_weights(c, residues, *kernels, w, weights + g * group_weights, first, last);
      }
    });
    if (!untouched.empty() && !c.add_dx && !fills()) {
      pool.split(std::int64_t{c.x.n} * c.x.c, 1,
                 [&](std::int64_t first, std::int64_t last) { zero_untouched(dx, first, last); });
    }
    pool.run([&](int part) {
      void* const workspace =
          static_cast<std::byte*>(args.workspace) + weight_bytes + static_cast<std::size_t>(part) * part_bytes;
      for (int g = 0; g < c.op.groups; ++g) {
        run_group(part, g, weights + g * group_weights, args, workspace);
      }
    });
  }

  /// Residues meet in every line of dx: some images at a time, so that it is still in a cache when the next one comes.
  void run_group(int part, int g, const T* weights, const Args& args, void* workspace) const {
    constexpr std::int64_t most_bytes = 4 << 20;
    const std::int64_t image_bytes = c.group_channels() * c.x.plane() * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t images = products.size() == 1 ? c.x.n : std::max<std::int64_t>(1, most_bytes / image_bytes);
    const Tensor& dx = args.dx[0];
    const Source<T> dy = gradient_source<T>(c, args).further(g * c.group_filters() * c.y.plane());
    const bool fill = fills() && !c.add_dx;
    for (std::int64_t first = 0; first < c.x.n; first += images) {
      for (const auto& [left, last, product] : products) {
        const Residue& residue = residues[last];
        const int w = residues[left].w;
        T* const to = dx.as<T>() + g * c.group_channels() * c.x.plane() + std::int64_t{residue.h} * c.x.w + w;
        product.run(part,
                    {.a = weights + residue.weights_at,
                     .lda = residue.weights_ld,
                     .source = dy,
                     .output = {to, dx.pitch, c.x.plane(), cols(w), std::int64_t{c.op.stride.h} * c.x.w, c.op.stride.w,
                                fill ? c.x.h : 0, c.x.w},
                     .a_left = weights + residues[left].weights_at,
                     .lda_left = residues[left].weights_ld,
                     .bias = nullptr,
                     .add = c.add_dx,
                     .relu = false,
                     .non_temporal = wants_non_temporal<T>(c.x),
                     .images = {first, first + images}},
                    workspace);
      }
    }
  }
};

template <class T>
Lowered::Step backward_data_step(const ConvProblem& c, Pool& pool, const MicroKernels<T>& kernels) {
  const auto step_of = [&pool](auto data) {
    const std::size_t bytes = data.workspace_bytes();
    return step(
        {Pass::backward_data}, "im2col_gemm",
        [&pool, data = std::move(data)](const Args& args) { data.run(args, pool); }, bytes);
  };
  if (is_subpixel(c)) return step_of(SubpixelData<T>(c, pool.threads(), kernels));
  if (has_few_channels(c)) return step_of(FewChannelsData<T>(c, pool.threads(), kernels));
  return step_of(BackwardData<T>(c, pool.threads(), kernels));
}

// ---- backward_params ----

template <class T>
Lowered::Step backward_params_step(const ConvProblem& c, Pool& pool, const MicroKernels<T>& kernels) {
  ParamsProduct<T> product(c, forward_columns(c), pool.threads(), kernels);
  const std::size_t bytes = product.workspace_bytes();
  return step(
      {Pass::backward_params}, "im2col_gemm",
      [c, &pool, product = std::move(product)](const Args& args) {
        product.run(pool,
                    {.x = {args.x[0].as<T>(), args.x[0].pitch},
                     .dy = gradient_source<T>(c, args),
                     .dw = args.dw.empty() ? nullptr : args.dw[0].as<T>(),
                     .db = args.dw.size() < 2 ? nullptr : args.dw[1].as<T>(),
                     .add = c.add_dw},
                    args.workspace);
      },
      bytes);
}

// ---- errors ----

/// Roundings that a term of dx meets.
template <class T>
std::int64_t data_roundings(const ConvProblem& c) {
  const Conv& op = c.op;
  const std::int64_t filters = c.group_filters();
  if (is_subpixel(c)) {
    return ColumnProduct<T>::roundings(filters,
                                       divide_up(op.kernel.h, op.stride.h) * divide_up(op.kernel.w, op.stride.w));
  }
  std::int64_t most = 0, most_taps = 0;
  for (int h = 0; h < op.stride.h; ++h) {
    for (int w = 0; w < op.stride.w; ++w) {
      const auto taps =
          static_cast<std::int64_t>(meeting_taps(h, op.kernel.h, op.stride.h, op.pad.h, op.dilation.h).size() *
                                    meeting_taps(w, op.kernel.w, op.stride.w, op.pad.w, op.dilation.w).size());
      if (taps == 0) continue;
      most = std::max(most, ColumnProduct<T>::roundings(filters, taps));
      most_taps = std::max(most_taps, taps);
    }
  }
  // Few channels: a product per tap, added up where they meet.
  return has_few_channels(c) ? ColumnProduct<T>::roundings(filters, 1) + most_taps : most;
}

}  // namespace

double im2col_gemm_error(const ConvProblem& c, DType dtype, Pass pass, const Context& context) {
  const std::int64_t sum = with_type(dtype, [&]<class T>() {
    const std::int64_t taps = std::int64_t{c.op.kernel.h} * c.op.kernel.w;
    switch (pass) {
      case Pass::forward: return ColumnProduct<T>::roundings(c.group_channels(), taps);
      case Pass::backward_params:
        return ParamsProduct<T>(c, forward_columns(c), context.pool.threads(), context.set.of<T>()).roundings();
      default: return data_roundings<T>(c);
    }
  });
  return error_of_roundings(static_cast<double>(sum + last_roundings(c, pass)), dtype);
}

Lowered::Step im2col_gemm_step(const ConvProblem& problem, DType dtype, Pass pass, const Context& context) {
  return with_type(dtype, [&]<class T>() {
    const MicroKernels<T>& kernels = context.set.of<T>();
    switch (pass) {
      case Pass::forward: return forward_step<T>(problem, context.pool, kernels);
      case Pass::backward_params: return backward_params_step<T>(problem, context.pool, kernels);
      default: return backward_data_step<T>(problem, context.pool, kernels);
    }
  });
}

}  // namespace lamina::eigen
