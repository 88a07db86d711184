// The micro-kernels of products, by where their operands are. Compiled once; what it measures is compiled per set.

#include "lamina/kernel_rates.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <new>
#include <vector>

#include "common.h"
#include "instruction_set.h"
#include "peak.h"
#include "product_blocks.h"

namespace lamina::eigen {
namespace {

constexpr int runs = 7;
constexpr double long_enough = 1e-3;
constexpr std::int64_t usual_depth = 256,
                       short_depth = 64;  // of packed panels; short: A and a panel share the first level

// Not a multiple of the last level's size: hypervisors report sizes of hundreds of MiB for a few that the cores have.
constexpr std::size_t beyond_caches = std::size_t{256} << 20;

/// Bytes of a level of the data cache, or what most processors have where the system does not say.
std::size_t cache_bytes(int name, std::size_t usual) {
  const long bytes = ::sysconf(name);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : usual;
}

/// Where the second factor of a product is: panels, one after the other.
struct Place {
  std::string name;
  std::int64_t depth;  ///< of a panel
  std::int64_t pitch;  ///< elements from k to k; 0: packed, a panel's width
  std::size_t wanted;  ///< bytes of all panels together, about
  std::string bounds;  ///< which layers read there, for the reader
};

template <class T>
std::vector<Place> places() {
  const std::size_t l1 = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, std::size_t{32} << 10);
  const std::size_t l2 = cache_bytes(_SC_LEVEL2_CACHE_SIZE, std::size_t{1} << 20);
  const std::size_t l3 = std::max(cache_bytes(_SC_LEVEL3_CACHE_SIZE, std::size_t{16} << 20), 2 * l2);
  return {{"packed, L1", short_depth, 0, l1 / 2, "layers with few channels or features on small images"},
          {"packed, L2", usual_depth, 0, l2 / 2, "fully connected layers, whose blocks are 256 KiB"},
          {"packed, L3", usual_depth, 0, std::min(l3 / 2, std::size_t{16} << 20),
           "Winograd's convolutions (3x3 and 5x5 with stride 1)"},
          {"packed, memory", usual_depth, 0, beyond_caches, "no layer: panels are packed so that they stay in caches"},
          {"packed, block", block_row_bytes / static_cast<std::int64_t>(sizeof(T)), 0, block_panel_bytes,
           "convolutions with strides or other windows, and 1x1 unless they are read in place"},
          {"planes of 14x14, L2", usual_depth, 14 * 14, 0,
           "1x1 convolutions with stride 1 on small planes, which vectors of 64 bytes read in place"},
          {"planes of 56x56, L3", usual_depth, 56 * 56, 0, "likewise on large planes"}};
}

constexpr const char* peak_bounds = "every layer but Winograd's, which multiplies less than its definition";

/// The tile of convolutions by products and of most fully connected layers, then that of Winograd's and of LSTMs,
/// unless it is the same.
template <class T>
std::vector<const MicroKernels<T>*> tiles_of(const InstructionSet& set) {
  const MicroKernels<T>&tall = set.tall<T>(), &plain = set.of<T>();
  if (tall.rows == plain.rows && tall.vectors == plain.vectors) return {&tall};
  return {&tall, &plain};
}

template <class T>
class Product {
 public:
  Product(const MicroKernels<T>& kernels, const Place& place) : kernels_(kernels), place_(place) {
    const std::int64_t width = kernels.width(), panel = place.depth * width;
    pitch_ = place.pitch > 0 ? place.pitch : width;
    step_ = place.pitch > 0 ? width : panel;
    panels_ = place.pitch > 0 ? place.pitch / width
                              : std::max<std::int64_t>(1, static_cast<std::int64_t>(place.wanted / sizeof(T)) / panel);
    const std::int64_t count = place.pitch > 0 ? place.depth * place.pitch : panels_ * panel;
    a_ = Memory(kernels.rows * place.depth);
    b_ = Memory(count + width);  // the last panel's last row may be read as whole vectors
    c_ = Memory(kernels.rows * width);
  }

  std::size_t bytes() const { return static_cast<std::size_t>(panels_ * place_.depth * kernels_.width()) * sizeof(T); }

  /// Operations per second, best of several runs.
  double flops_per_second(bool prefetched) {
    std::int64_t turns = 1;
    double best = seconds(turns, prefetched);
    while (best < long_enough) best = seconds(turns *= 2, prefetched);
    for (int run = 1; run < runs; ++run) best = std::min(best, seconds(turns, prefetched));
    return 2.0 * static_cast<double>(turns * panels_ * place_.depth * kernels_.rows * kernels_.width()) / best;
  }

 private:
  /// Numbers of normal size that start where lines do.
  class Memory {
   public:
    Memory() = default;
    explicit Memory(std::int64_t count) : count_(count), data_(::new (std::align_val_t(line)) T[std::size_t(count)]) {
      std::fill_n(data_, count_, T(0.5));
    }
    Memory(const Memory&) = delete;
    Memory& operator=(Memory&& other) noexcept {
      std::swap(data_, other.data_);
      std::swap(count_, other.count_);
      return *this;
    }
    ~Memory() { ::operator delete[](data_, std::align_val_t(line)); }
    T* at(std::int64_t i) const { return data_ + i; }

   private:
    static constexpr std::size_t line = 64;
    std::int64_t count_ = 0;
    T* data_ = nullptr;
  };

  double seconds(std::int64_t turns, bool prefetched) {
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t turn = 0; turn < turns; ++turn)
      for (std::int64_t panel = 0; panel < panels_; ++panel) {
        Tile<T> tile{.depth = place_.depth,
                     .a = a_.at(0),
                     .lda = place_.depth,
                     .rows = kernels_.rows,
                     .b = b_.at(panel * step_),
                     .ldb = pitch_,
                     .c = c_.at(0),
                     .ldc = kernels_.width()};
        if (prefetched) {
          tile.prefetch.panel = b_.at((panel + 1) % panels_ * step_);
          tile.prefetch.rows = 64 / static_cast<int>(sizeof(T));
        }
        kernels_.tile[0][kernels_.vectors - 1](tile);
      }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  const MicroKernels<T>& kernels_;
  const Place& place_;
  std::int64_t pitch_ = 0, step_ = 0, panels_ = 1;
  Memory a_, b_, c_;
};

template <class T>
void measure_set(const InstructionSet& set, DType dtype, const std::function<bool()>& stop,
                 std::vector<KernelRate>& found) {
  Pool pool(1);
  double before = peak_flops_per_second(pool, set, dtype);
  found.push_back({set.name, {}, "registers", 0, before, 0, before, peak_bounds});
  for (const Place& place : places<T>()) {
    if (stop && stop()) return;
    for (const MicroKernels<T>* kernels : tiles_of<T>(set)) {
      Product<T> product(*kernels, place);
      KernelRate rate{set.name, {kernels->rows, kernels->vectors, kernels->lanes}, place.name, product.bytes()};
      rate.bounds = place.bounds;
      rate.flops_per_second = product.flops_per_second(false);
      rate.prefetched_flops_per_second = product.flops_per_second(true);
      const double after = peak_flops_per_second(pool, set, dtype);
      rate.peak_flops_per_second = (before + after) / 2;
      before = after;
      found.push_back(rate);
    }
  }
}

}  // namespace
}  // namespace lamina::eigen

namespace lamina {

std::vector<KernelRate> kernel_rates(DType dtype, const std::function<bool()>& stop) {
  std::vector<KernelRate> found;
  for (const eigen::InstructionSet* set : eigen::instruction_sets())
    if (eigen::runs_here(*set) && !(stop && stop()))
      eigen::with_type(dtype, [&]<class T>() { eigen::measure_set<T>(*set, dtype, stop, found); });
  return found;
}

}  // namespace lamina
