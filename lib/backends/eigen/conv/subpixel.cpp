// The data gradient as a sub-pixel convolution.

#include "subpixel.h"

#include <algorithm>
#include <vector>

#include "lib/backends/eigen/gemm/strided.h"

namespace lamina::eigen {

bool is_subpixel(const ConvUnit& c) {
  constexpr int most_channels = 4, wide = 3;  // of channels; of strides: narrower ones are scattered by whole vectors
  const Conv& op = c.op;
  return c.group_channels() <= most_channels && op.stride.w >= wide && op.dilation == Size(1) &&
         op.kernel.h >= op.stride.h && op.kernel.w >= op.stride.w;
}

template <class T>
SubpixelData<T>::SubpixelData(const ConvUnit& c, int threads, const MicroKernels<T>& kernels)
    : c_(c),
      h_{c.op.stride.h, c.op.pad.h, c.op.kernel.h, c.x.h},
      w_{c.op.stride.w, c.op.pad.w, c.op.kernel.w, c.x.w},
      image_parts_(std::min(threads, c.x.n)),
      share_parts_(threads / image_parts_),
      product_(product(share_parts_, kernels)) {}

template <class T>
ColumnProduct<T> SubpixelData<T>::product(int threads, const MicroKernels<T>& kernels) const {
  std::vector<Tap> taps;
  for (int u = 0; u < h_.taps(); ++u) {
    for (int v = 0; v < w_.taps(); ++v) taps.push_back({h_.first() - u, w_.first() - v});
  }
  return ColumnProduct<T>(
      Columns({1, c_.group_filters(), c_.y.h, c_.y.w}, h_.count(), w_.count(), Size(1), taps, c_.relu), rows(), threads,
      kernels);
}

template <class T>
auto SubpixelData<T>::allocate(ScratchAllocator& scratch) const -> Buffers {
  Buffers buffers{};
  buffers.weights = scratch.take<T>(c_.op.groups * rows() * product_.depth());
  buffers.sums = scratch.take<T>(image_parts_ * rows() * grid());
  const std::int64_t part_bytes = round_up(static_cast<std::int64_t>(product_.workspace_bytes()), 64);
  buffers.parts = scratch.take<std::byte>(image_parts_ * share_parts_ * part_bytes);
  return buffers;
}

template <class T>
std::size_t SubpixelData<T>::workspace_bytes() const {
  ScratchAllocator counter;
  allocate(counter);
  return counter.used_bytes();
}

/// Rows [first, last) of all groups' (c, a, b).
template <class T>
void SubpixelData<T>::sort_weights(const T* w, T* to, std::int64_t first, std::int64_t last) const {
  const std::int64_t filters = c_.group_filters(), channels = c_.group_channels();
  const std::int64_t depth = product_.depth();
  for (std::int64_t row = first; row < last; ++row) {
    const std::int64_t group = row / rows(), m = row % rows();
    const auto b = static_cast<int>(m % w_.stride), a = static_cast<int>(m / w_.stride % h_.stride);
    const std::int64_t channel = m / w_.stride / h_.stride;
    T* next = to + row * depth;
    for (std::int64_t k = 0; k < filters; ++k) {
      const T* const filter = w + ((group * filters + k) * channels + channel) * h_.kernel * w_.kernel;
      for (int r = a; r < a + h_.taps() * h_.stride; r += h_.stride) {
        for (int s = b; s < b + w_.taps() * w_.stride; s += w_.stride) {
          *next++ = r < h_.kernel && s < w_.kernel ? filter[r * w_.kernel + s] : T{0};
        }
      }
    }
  }
}

/// Rows [first, last) of (c, i): their sums, which become stride.h rows of dx each.
template <class T>
void SubpixelData<T>::place(const T* sums, T* image, std::int64_t first, std::int64_t last) const {
  const int step = w_.stride, count = w_.count();
  for (std::int64_t row = first; row < last; ++row) {
    const std::int64_t channel = row / h_.count(), i = row % h_.count();
    for (int a = 0; a < h_.stride; ++a) {
      const std::int64_t h = i * h_.stride + h_.start(a);
      if (h < 0 || h >= h_.extent) continue;
      T* const to = image + channel * c_.x.plane() + h * w_.extent;
      for (int b = 0; b < step; ++b) {
        const std::int64_t m = (channel * h_.stride + a) * step + b;
        const T* const from = sums + m * grid() + i * count;
        const int start = w_.start(b);
        const Range inside = range_within(count, step, start, 0, w_.extent);
        for (int j = inside.first; j < inside.last; ++j) {
          T& element = to[j * step + start];
          element = c_.add_dx ? element + from[j] : from[j];
        }
      }
    }
  }
}

template <class T>
void SubpixelData<T>::run(const Args& args, ThreadPool& pool) const {
  const Tensor& dx = args.dx[0];
  if (!dx) return;
  ScratchAllocator scratch(args.workspace);
  const Buffers buffers = allocate(scratch);
  pool.split(c_.op.groups * rows(), 1, [&](std::int64_t first, std::int64_t last) {
    sort_weights(args.w[0].as<T>(), buffers.weights, first, last);
  });
  const Source<T> dy = gradient_source<T>(c_, args);
  const std::int64_t part_bytes = round_up(static_cast<std::int64_t>(product_.workspace_bytes()), 64);
  for (int group = 0; group < c_.op.groups; ++group) {
    for (int first = 0; first < c_.x.n; first += image_parts_) {
      // Every image of this turn has share_parts_ threads: for its product, then for the way to its place.
      const auto for_each = [&](auto work) {
        pool.run([&](int part) {
          const int image = first + part / share_parts_;
          if (part < image_parts_ * share_parts_ && image < c_.x.n) work(part, image, part % share_parts_);
        });
      };
      const auto sums_of = [&](int image) { return buffers.sums + (image - first) * rows() * grid(); };
      for_each([&](int part, int image, int share) {
        const std::int64_t channels_before = group * c_.group_filters() * c_.y.plane();
        product_.run(share,
                     {.a = buffers.weights + group * rows() * product_.depth(),
                      .lda = product_.depth(),
                      .source = dy.from(image).further(channels_before),
                      .output = {sums_of(image), 0, grid(), grid(), grid(), 1}},
                     buffers.parts + part * part_bytes);
      });
      for_each([&](int, int image, int share) {
        const IndexRange mine = share_of(std::int64_t{c_.group_channels()} * h_.count(), 1, share, share_parts_);
        place(sums_of(image), dx.as<T>() + image * dx.pitch + group * c_.group_channels() * c_.x.plane(), mine.first,
              mine.last);
      });
    }
  }
}

template class SubpixelData<float>;
template class SubpixelData<double>;

}  // namespace lamina::eigen
