#pragma once
// Element-wise work in packs: 16 bytes per access if every tensor of a launch allows it, else single elements.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "clamp_at_zero.h"
#include "halves.h"
#include "launch.h"

namespace lamina::LAMINA_CUDA_SPACE {

constexpr int pack_threads = 256;  // threads of a block

/// Elements that one thread moves at once. A pack of halves has up to 8, and takes two accesses as float.
template <class T, int width>
struct alignas(sizeof(T) * width < 16 ? sizeof(T) * width : 16) Pack {
  T v[width];
};

/// A pack of T in the type that kernels compute in.
template <class T, int width>
using Loaded = Pack<Computed<T>, width>;

/// The number of elements of T in 16 bytes.
template <class T>
constexpr int widest = static_cast<int>(16 / sizeof(T));

template <int width, class T>
__device__ Loaded<T, width> load_pack(const T* from) {
  const Pack<T, width> stored = *reinterpret_cast<const Pack<T, width>*>(from);
  if constexpr (!is_stored_half<T>) {
    return stored;
  } else {
    Loaded<T, width> pack;
    for (int k = 0; k < width; ++k) pack.v[k] = widen(stored.v[k]);
    return pack;
  }
}

template <class T, int width>
__device__ void store_pack(T* to, const Loaded<T, width>& pack) {
  if constexpr (!is_stored_half<T>) {
    *reinterpret_cast<Pack<T, width>*>(to) = pack;
  } else {
    Pack<T, width> stored;
    for (int k = 0; k < width; ++k) narrow(stored.v[k], pack.v[k]);
    *reinterpret_cast<Pack<T, width>*>(to) = stored;
  }
}

/// Sets to = pack, or adds to += pack, then with `relu` max(to, 0). Old contents are read only if they are added to.
template <class T, int width>
__device__ void put_pack(T* to, Loaded<T, width> pack, bool adds, bool relu = false) {
  if (adds) {
    const Loaded<T, width> old = load_pack<width>(static_cast<const T*>(to));
    for (int k = 0; k < width; ++k) pack.v[k] += old.v[k];
  }
  if (relu)
    for (int k = 0; k < width; ++k) pack.v[k] = clamp_at_zero(pack.v[k]);
  store_pack(to, pack);
}

/// The range of a launch: the number of images, and of elements in each.
struct Extent {
  int images;
  std::int64_t size;
};

/// The images of a tensor: the elements of image n start at at(n).
template <class T>
struct Images {
  T* data = nullptr;
  std::int64_t pitch = 0;

  Images() = default;
  Images(T* first, std::int64_t its_pitch) : data(first), pitch(its_pitch) {}
  template <class U>
  Images(const View<U>& view) : data(view.data), pitch(view.pitch) {}  // NOLINT: implicit on purpose
  LAMINA_HOST_DEVICE T* at(int n) const { return data + n * pitch; }
};

/// Blocks along x for `count` threads; kernels stride over the rest.
inline unsigned blocks_for(std::int64_t count, int threads) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(divide_up(count, threads), 1, 1 << 30));
}

/// A grid with a thread for every pack. Packs of an image are along x, images along y.
inline dim3 grid_of_packs(const Extent& extent, int width) {
  return dim3(blocks_for(extent.size / width, pack_threads), static_cast<unsigned>(std::min(extent.images, 65535)));
}

/// The widest pack that all tensors of a launch allow. The tensors have one shape, or are null.
template <class T>
class Packing {
 public:
  /// With `flat`, dense tensors count as one long image.
  template <class U>
  Packing(const View<U>& first, bool flat) : dense_(flat), images_(first.n), size_(first.image()) {
    look_at(first);
  }

  template <class U>
  void look_at(const View<U>& view) {
    if (view.data == nullptr) return;
    dense_ = dense_ && (view.pitch == view.image() || view.n == 1);
    bases_fit_ = bases_fit_ && reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0;
    pitches_fit_ = pitches_fit_ && view.pitch % widest<T> == 0;
  }

  /// Calls use(std::integral_constant<int, width>(), extent).
  template <class Use>
  void with_width(const Use& use) const {
    const Extent extent = dense_ ? Extent{1, images_ * size_} : Extent{images_, size_};
    if (bases_fit_ && (dense_ || pitches_fit_) && extent.size % widest<T> == 0) {
      use(std::integral_constant<int, widest<T>>(), extent);
    } else {
      use(std::integral_constant<int, 1>(), extent);
    }
  }

  /// Calls use(std::integral_constant<int, width>(), start). start(LAMINA_KERNEL(kernel), arguments...) launches a
  /// kernel of (Extent, arguments...) with a thread for every pack.
  template <class Use>
  void launch_by(Stream stream, const Use& use) const {
    with_width([&](auto width, const Extent& extent) {
      use(width, [&](auto kernel, const char* name, const auto&... arguments) {
        launch(kernel, name, grid_of_packs(extent, width()), pack_threads, 0, stream, extent, arguments...);
      });
    });
  }

 private:
  bool dense_, bases_fit_ = true, pitches_fit_ = true;
  int images_;
  std::int64_t size_;
};

/// The packing of a few tensors.
template <class T, class U, class... Views>
Packing<T> packing_of(bool flat, const View<U>& first, const Views&... others) {
  Packing<T> packing(first, flat);
  (packing.look_at(others), ...);
  return packing;
}

/// Calls body(image, first element of the pack) for every pack of this thread.
template <int width, class Body>
__device__ void for_each_pack(const Extent& extent, Body body) {
  const std::int64_t first = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * width;
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x * width;
  for (int n = static_cast<int>(blockIdx.y); n < extent.images; n += static_cast<int>(gridDim.y))
    for (std::int64_t i = first; i < extent.size; i += stride) body(n, i);
}

}  // namespace lamina::LAMINA_CUDA_SPACE
