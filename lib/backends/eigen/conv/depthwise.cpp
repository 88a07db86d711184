// Convolutions whose groups have few channels, as sums over taps along the rows of planes.
//
// forward           y at (p, q) = sum over taps of w[r][s] * x at the tap
// backward_data     the same sums of dy; positions of x with one residue modulo the stride are computed together
// backward_params   dw[r][s] = sum over positions of dy * x at the tap: tap_gradients.h
//
// Taps read copies of bands of planes. A vector has the sums of neighbours along a row or, where a group has a vector
// of filters (filter_sums.h), the sums of all these filters at one position.

#include <algorithm>
#include <map>
#include <utility>

#include "conv_tail.h"
#include "filter_sums.h"
#include "lib/backends/eigen/runtime/non_temporal.h"
#include "tap_gradients.h"

namespace lamina::eigen {
namespace {

/// The positions that a pass computes along one axis, and the taps of each residue, by growing offset.
struct Axis {
  int extent, step;
  std::map<int, std::vector<AxisTap>> taps;

  int residues() const { return std::min(step, extent); }  // residues that occur
  int positions(int residue) const { return ceil_div(extent - residue, step); }
};

Axis axis_of(Pass pass, int x, int y, int kernel, int stride, int pad, int dilation) {
  if (pass == Pass::forward) {
    Axis axis{y, 1, {}};
    for (int i = 0; i < kernel; ++i) axis.taps[0].push_back({i, i * dilation - pad});
    return axis;
  }
  Axis axis{x, stride, taps_of_residues(x, kernel, stride, pad, dilation)};
  for (auto& [residue, taps] : axis.taps) std::ranges::reverse(taps);
  return axis;
}

/// Planes of sums: y, or dx.
template <class T>
class PlaneSums {
 public:
  PlaneSums(const ConvUnit& c, Pass pass, const MicroKernels<T>& kernels)
      : c_(c),
        forward_(pass == Pass::forward),
        kernels_(&kernels),
        rows_(axis_of(pass, c.x.h, c.y.h, c.op.kernel.h, c.op.stride.h, c.op.pad.h, c.op.dilation.h)),
        cols_(axis_of(pass, c.x.w, c.y.w, c.op.kernel.w, c.op.stride.w, c.op.pad.w, c.op.dilation.w)),
        bands_(make_bands()),
        groups_at_once_(std::clamp<std::int64_t>(TapBands::copied_bytes / bytes_of_group(), 1, c.op.groups)) {
    const bool is_square = c.op.kernel.h == c.op.kernel.w && c.op.stride == Size(1) && c.op.dilation == Size(1);
    square_ = is_square ? TapKernels<T>::square(c.op.kernel.h) : 0;
  }

  std::int64_t most_taps() const {
    std::int64_t most = 0;
    for (std::size_t i = 0; i + 1 < first_.size(); ++i) most = std::max(most, first_[i + 1] - first_[i]);
    return most * planes();
  }

  std::size_t workspace_bytes(int threads) const { return part_bytes() * static_cast<std::size_t>(threads); }

  void run(const TapOperands<T>& operands, ThreadPool& pool, void* workspace) const {
    const std::size_t bytes = part_bytes();
    pool.split_parts(std::int64_t{c_.x.n} * c_.op.groups, 1, [&](int part, std::int64_t first, std::int64_t last) {
      ScratchAllocator scratch = ScratchAllocator(workspace).part(part, bytes);
      const Scratch own = allocate(scratch);
      std::fill_n(own.copy, copied_elements(), T{0});
      make_groups(operands, first, last, own);
    });
  }

  /// The memory of one thread.
  struct Scratch {
    T* copy;
    T* weights;     // data gradient: the weights of all planes for the taps of residue 0, then of residue 1, ...
    T* columns[2];  // sums of the columns of two residues
    T* out;         // rows of results, before non-temporal stores copy them to y or dx
  };

  Scratch allocate(ScratchAllocator& scratch) const {
    const Band& band = bands_.largest();
    Scratch own{};
    own.copy = scratch.take<T>(copied_elements());
    own.weights = scratch.take<T>(planes() * static_cast<std::int64_t>(places_.size()));
    if (cols_.residues() > 1)
      for (T*& side : own.columns) side = scratch.take<T>(band.rows * column_ld());
    if (non_temporal()) own.out = scratch.take<T>(band.rows * rows_.step * to().w);
    return own;
  }

  /// Computes the results of the groups [first, last). Groups are numbered through all images. `own.copy` must be zeros
  /// before the first call.
  void make_groups(const TapOperands<T>& operands, std::int64_t first, std::int64_t last, const Scratch& own) const {
    while (first < last) {
      const std::int64_t image = first / c_.op.groups, group = first - image * c_.op.groups;
      const std::int64_t count = std::min({groups_at_once_, c_.op.groups - group, last - first});
      for (std::size_t band = 0; band < bands_.count(); ++band)
        make_band(operands, image, group, group + count, band, own);
      first += count;
    }
    non_temporal_fence();
  }

  /// Number of elements of the copies of groups_at_once_ groups, and of a vector behind them that is read and written.
  std::int64_t copied_elements() const { return groups_at_once_ * planes() * bands_.largest().plane + kernels_->lanes; }

 private:
  int planes() const { return forward_ ? c_.group_channels() : c_.group_filters(); }   // planes that a group reads
  int results() const { return forward_ ? c_.group_filters() : c_.group_channels(); }  // planes that a group makes
  const Shape& from() const { return forward_ ? c_.x : c_.y; }
  const Shape& to() const { return forward_ ? c_.y : c_.x; }
  bool non_temporal() const { return wants_non_temporal<T>(to()) && !(forward_ ? c_.add : c_.add_dx); }
  std::size_t part_bytes() const {
    return allocated_bytes([&](auto& scratch) { allocate(scratch); });
  }
  std::int64_t column_ld() const { return round_up(cols_.positions(0), kernels_->lanes); }

  /// The bytes of a group's copies; 1 if only padding is read.
  std::int64_t bytes_of_group() const {
    return std::max<std::int64_t>(1, planes() * bands_.largest().plane * static_cast<std::int64_t>(sizeof(T)));
  }
  /// Sorts the taps by residue.
  TapBands make_bands() {
    std::vector<Tap> taps;
    first_.push_back(0);
    for (int h = 0; h < rows_.residues(); ++h) {
      for (int v = 0; v < cols_.residues(); ++v) {
        for (const AxisTap& r : rows_.taps[h]) {
          for (const AxisTap& s : cols_.taps[v]) {
            taps.push_back({r.offset, s.offset});
            places_.push_back(r.index * c_.op.kernel.w + s.index);
          }
        }
        first_.push_back(static_cast<std::int64_t>(places_.size()));
      }
    }
    const Size step = forward_ ? c_.op.stride : Size(1);
    return {{planes(), from().h, from().w, rows_.positions(0), cols_.positions(0), step, std::move(taps), first_},
            kernels_->lanes,
            sizeof(T),
            rows_.positions(0)};
  }

  void make_band(const TapOperands<T>& operands, std::int64_t image, std::int64_t first, std::int64_t last,
                 std::size_t band, const Scratch& own) const {
    const std::int64_t before = bands_[band].first * rows_.step;
    const std::int64_t rows = std::min(rows_.extent - before, bands_[band].rows * rows_.step);
    bands_.copy(band, operands.from.from(image).further(first * planes() * from().plane()), (last - first) * planes(),
                *kernels_, own.copy);
    for (std::int64_t group = first; group < last; ++group) {
      for (std::int64_t i = 0; i < results(); ++i) {
        const std::int64_t result = group * results() + i;
        const T* const weights = weights_of(operands.w, group, i, own.weights);
        T* const to = operands.to.template as<T>() + image * operands.to.pitch + result * this->to().plane() +
                      before * this->to().w;
        T* const out = own.out == nullptr ? to : own.out;
        const Epilogue<T> epilogue = operands.epilogue.from(result);
        sum_band(band, own.copy + (group - first) * planes() * bands_[band].plane, weights, own, epilogue, out);
        activate(epilogue, out, 0, 1, rows * this->to().w);
        if (own.out != nullptr) copy_non_temporal(to, own.out, rows * this->to().w);
      }
    }
  }

  /// The weights of one result, in the order of a band's offsets. In a forward pass they have this order already.
  const T* weights_of(const T* w, std::int64_t group, std::int64_t result, T* sorted) const {
    const std::int64_t kernel = std::int64_t{c_.op.kernel.h} * c_.op.kernel.w;
    w += group * planes() * results() * kernel + result * kernel * (forward_ ? planes() : 1);
    if (forward_) return w;
    T* to = sorted;
    for (std::size_t i = 0; i + 1 < first_.size(); ++i) {
      for (int plane = 0; plane < planes(); ++plane)
        for (std::int64_t t = first_[i]; t < first_[i + 1]; ++t)
          *to++ = w[plane * results() * kernel + places_[static_cast<std::size_t>(t)]];
    }
    return sorted;
  }

  /// Computes one result of a band. The band's first row is at `to`.
  void sum_band(std::size_t band, const T* copy, const T* weights, const Scratch& own, const Epilogue<T>& epilogue,
                T* to) const {
    const Band& shape = bands_[band];
    const std::int64_t width = this->to().w, ldc = rows_.step * width;
    for (int h = 0; h < rows_.residues(); ++h, to += width) {
      const std::int64_t rows = std::min(shape.rows, rows_.positions(h) - bands_[band].first);
      if (rows <= 0) continue;
      for (int v = 0; v < cols_.residues(); ++v) {
        const auto residue = static_cast<std::size_t>(std::int64_t{h} * cols_.residues() + v);
        const std::int64_t first = planes() * first_[residue], taps = planes() * first_[residue + 1] - first;
        TapSums<T> sums{.to = to,
                        .ldc = ldc,
                        .end = rows_.step == 1 ? to + rows * width : to,
                        .from = copy,
                        .ld = bands_.ld(),
                        .offsets = shape.offsets.data() + first,
                        .weights = weights + first,
                        .taps = taps,
                        .rows = rows,
                        .cols = cols_.positions(v),
                        .epilogue = epilogue};
        if (cols_.residues() > 1) {
          sums.to = own.columns[v % 2];
          sums.ldc = column_ld();
          sums.end = sums.to + rows * sums.ldc;
          sums.epilogue = {};
        }
        kernels_->taps.sums[square_](sums);
        if (cols_.residues() > 1) store_columns(own, v, rows, to, epilogue);
      }
    }
  }

  /// Stores the sums of the columns of residue v in the result. With step 2 it stores both residues at once.
  void store_columns(const Scratch& own, int v, std::int64_t rows, T* to, const Epilogue<T>& epilogue) const {
    const std::int64_t width = this->to().w, ld = column_ld();
    OutputTile<T> tile{.to = to + v,
                       .ldc = rows_.step * width,
                       .step = cols_.step,
                       .from = own.columns[v % 2],
                       .ldf = ld,
                       .rows = static_cast<int>(rows),
                       .count = cols_.positions(v),
                       .epilogue = epilogue};
    if (cols_.step > 2) return kernels_->store_tile(tile);
    if (v == 0) return;
    tile.to = to;
    tile.left = own.columns[0];
    tile.left_ld = ld;
    kernels_->store_tile(tile);
    if (width % 2 == 0) return;
    for (std::int64_t i = 0; i < rows; ++i) {
      T& last = to[i * tile.ldc + width - 1];
      last = own.columns[0][i * ld + width / 2] + (epilogue.add ? last : T{0});
    }
  }

  ConvUnit c_;
  bool forward_;
  const MicroKernels<T>* kernels_;
  Axis rows_, cols_;
  std::vector<std::int64_t> first_;  // the first tap of each residue; then the number of taps
  std::vector<int> places_;          // index of each tap in a plane of the kernel
  TapBands bands_;
  std::int64_t groups_at_once_;
  int square_;  // index in TapKernels::sums
};

/// The step of a pass by PlaneSums or FilterSums.
template <class T, class Sums>
Lowered::Step sums_step(const ConvUnit& c, Pass pass, const Context& context) {
  ThreadPool& pool = context.pool;
  Sums sums(c, pass, context.set.of<T>().kernels);
  const std::size_t bytes = sums.workspace_bytes(pool.threads());
  return step(
      {pass}, depthwise_name,
      [c, data = pass == Pass::backward_data, &pool, sums = std::move(sums),
       tail = ConvTail<T>(c, context.set)](const Args& args) {
        const Tensor& to = data ? args.dx[0] : args.y;
        if (!to) return;
        if (!data) place_addend(c, args, pool);
        const Source<T> from = data ? gradient_source<T>(c, args) : Source<T>{args.x[0].as<T>(), args.x[0].pitch};
        const Epilogue<T> epilogue = data ? Epilogue<T>{.add = c.add_dx} : epilogue_of(c, args, tail);
        sums.run({from, args.w[0].as<T>(), to, epilogue}, pool, args.workspace);
      },
      bytes);
}

}  // namespace

std::string depthwise_refusal(const ConvUnit& c, Pass, const Context&) {
  if (c.group_channels() == 1) return {};
  const std::string self = depthwise_name;
  if (c.op.groups == 1) return self + " is for several groups, or one channel";
  constexpr int most = 32;
  if (c.group_channels() <= most && c.group_filters() <= most) return {};
  return self + " is for groups of at most " + std::to_string(most) + " channels and filters, not of " +
         std::to_string(c.group_channels()) + " and " + std::to_string(c.group_filters());
}

bool depthwise_pays(const ConvUnit& c, Pass pass, const Context& context) {
  if (c.op.groups == 1) return false;
  const int channels = c.group_channels();
  if (pass == Pass::backward_params) return channels <= 4;
  if (with_type(c.dtype, [&]<class T>() { return FilterSums<T>::takes(c, pass, context.set.of<T>().kernels); }))
    return true;
  const bool strided = c.op.stride != Size(1);
  if (pass == Pass::backward_data) return strided || channels <= 16;
  return channels <= (strided ? 8 : 16);
}

Lowered::Step depthwise_step(const ConvUnit& c, Pass pass, const Choice& choice, const Context& context) {
  return with_type(c.dtype, [&]<class T>() {
    const MicroKernels<T>& kernels = context.set.of<T>().kernels;
    if (pass == Pass::backward_params) {
      using Gradients = TapGradients<T, PlaneSums<T>>;
      const int threads = context.pool.threads();
      Lowered::Step step = work_step({pass}, depthwise_name, Gradients(c, threads, kernels), context.pool);
      // Threads share the groups. With this many groups, no share is more than an eighth above the mean.
      if (choice.joins_gradients && c.op.groups >= 8 * (threads - 1) &&
          !FilterSums<T>::takes(c, Pass::backward_data, kernels)) {
        Gradients both(c, threads, kernels, PlaneSums<T>(c, Pass::backward_data, kernels));
        if (both.workspace_bytes() <= choice.workspace_limit)
          step.with_dx = work_step({pass}, depthwise_name, std::move(both), context.pool).kernel;
      }
      return step;
    }
    if (FilterSums<T>::takes(c, pass, kernels)) return sums_step<T, FilterSums<T>>(c, pass, context);
    return sums_step<T, PlaneSums<T>>(c, pass, context);
  });
}

double depthwise_error(const ConvUnit& c, Pass pass, const Context& context) {
  return with_type(c.dtype, [&]<class T>() {
    const MicroKernels<T>& kernels = context.set.of<T>().kernels;
    const auto last = static_cast<double>(last_roundings(c, pass));
    if (pass != Pass::backward_params)
      return error_of_roundings(static_cast<double>(PlaneSums<T>(c, pass, kernels).most_taps()) + last, c.dtype);
    const auto [own, in_double] = TapGradients<T, PlaneSums<T>>(c, context.pool.threads(), kernels).roundings();
    const double products = error_of_roundings(static_cast<double>(own) + 1 + last, c.dtype);
    const double totals = error_of_roundings(static_cast<double>(in_double) + last, DType::f64);
    return products + totals + products * totals;
  });
}

}  // namespace lamina::eigen
