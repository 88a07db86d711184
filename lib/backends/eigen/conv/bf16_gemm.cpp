// A unit of bf16 runs the algorithm of f32 on pairs of bf16. A pair is as large as a number of f32, so the dimension
// that the sums run over is halved: x's channels in a forward pass, y's channels in a data gradient, the images in a
// weight gradient. Packing, strides, taps and threads are as in f32. Only the tiles of the product and this file know
// pairs. This file pairs neighbours along the halved dimension; the last number of an odd count is paired with 0. It
// also rounds weights to bf16 and masks dy by y.
//
// The results are f32. y and dx are then rounded by chunks, as in on_copies.cpp. Compiled once, for every processor.

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "conv.h"
#include "conv_tail.h"
#include "lib/backends/common/on_copies.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t run_elements = 4096;  // elements that a thread pairs at once

/// The elements whose neighbours along a dimension become pairs. Element (part, group, e, i) with i < inner is at
/// part * pitch + (group * extent + e) * stride + i. e and e + 1 form a pair.
struct Along {
  std::int64_t outer, pitch, groups, extent, stride, inner;

  std::int64_t pairs() const { return divide_up(extent, std::int64_t{2}); }  // along the dimension
  std::int64_t count() const { return outer * groups * pairs() * inner; }
  /// The first element of index e of a group; groups are counted through all parts.
  std::int64_t at(std::int64_t group, std::int64_t e) const {
    return group / groups * pitch + (group % groups * extent + e) * stride;
  }
};

/// Writes the pairs of `from`, dense, group by group. With a mask, numbers are 0 where the mask is not above 0; `like`
/// is the layout of the mask.
template <class From>
void make_pairs(float* to, const From* from, const Along& along, const std::uint16_t* mask, const Along& like,
                void (*pair)(float*, const PairSource<From>&, std::int64_t), ThreadPool& pool) {
  const bool neighbours = along.inner == 1 && along.stride == 1 && (mask == nullptr || like.stride == 1);
  const std::int64_t pairs = neighbours ? 1 : along.pairs();  // rows of a group
  const std::int64_t length = neighbours ? along.pairs() : along.inner, rows = along.outer * along.groups * pairs;
  const std::int64_t blocks = divide_up(length, run_elements);
  pool.split(rows * blocks, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first, together = 1; i < last; i += together) {
      const std::int64_t row = i / blocks, start = i % blocks * run_elements;
      const std::int64_t count = std::min(run_elements, length - start);
      const std::int64_t group = row / pairs, e = row % pairs * 2;
      const bool one_step = !neighbours && blocks == 1 && (mask == nullptr || along.stride == like.stride);
      together = one_step ? std::clamp<std::int64_t>((along.extent - e) / 2, 1, last - i) : 1;  // short rows
      const auto place = [&](const auto* data, const Along& in, std::int64_t second) {
        return data == nullptr ? nullptr : data + in.at(group, e + second) + start * (neighbours ? 2 : 1);
      };
      const std::int64_t have_second = neighbours ? along.extent / 2 - start : e + 1 < along.extent ? count : 0;
      PairSource<From> source{.first = place(from, along, 0),
                              .second_count = std::clamp<std::int64_t>(have_second, 0, count),
                              .neighbours = neighbours,
                              .first_mask = place(mask, like, 0),
                              .rows = together,
                              .row_step = 2 * along.stride};
      if (source.second_count > 0) {
        source.second = place(from, along, 1);
        source.second_mask = place(mask, like, 1);
      }
      pair(to + row * length + start, source, count);
    }
  });
}

/// The extents of a product.
struct Extents {
  std::int64_t images, groups, channels, filters, x_plane, y_plane, taps;  // channels and filters of a group

  explicit Extents(const ConvUnit& c)
      : images(c.y.n),
        groups(c.op.groups),
        channels(c.group_channels()),
        filters(c.group_filters()),
        x_plane(c.x.plane()),
        y_plane(c.y.plane()),
        taps(std::int64_t{c.op.kernel.h} * c.op.kernel.w) {}

  Along x(std::int64_t pitch, Pass pass) const { return values(pitch, channels, x_plane, pass); }
  Along y(std::int64_t pitch, Pass pass) const { return values(pitch, filters, y_plane, pass); }
  Along weights(Pass pass) const {
    if (pass == Pass::forward) return {groups * filters, channels * taps, 1, channels, taps, taps};
    return {groups, filters * channels * taps, 1, filters, channels * taps, channels * taps};
  }

 private:
  Along values(std::int64_t pitch, std::int64_t extent, std::int64_t plane, Pass pass) const {
    if (pass == Pass::backward_params) return {1, 0, 1, images, pitch, groups * extent * plane};
    return {images, pitch, groups, extent, plane, plane};
  }
};

int halved(std::int64_t groups, std::int64_t extent) {
  return static_cast<int>(groups * divide_up(extent, std::int64_t{2}));
}

/// A pass of a unit on pairs, chunk by chunk. Its product is a pass of another unit, of f32.
struct OnPairs {
  Chunks chunks;
  ConvUnit chunk;    ///< the unit of one chunk
  ConvUnit product;  ///< the unit of f32 whose pass computes the product; its other passes are not used

  OnPairs(const ConvUnit& c, Pass pass, const Context& context)
      : chunks(c.y.n, c.x.count() + (c.add ? 2 : 1) * c.y.count(), context.halves.chunk_elements(),
               pass == Pass::backward_params ? 2 : 1),
        chunk(c),
        product(c) {
    chunk.x = product.x = chunks.shape(c.x);
    chunk.y = product.y = chunks.shape(c.y);
    product.values = DType::f32;
    if (pass != Pass::forward) product.relu = false;
    const Extents extents(chunk);
    if (pass == Pass::forward) {
      product.x.c = halved(extents.groups, extents.channels);
    } else if (pass == Pass::backward_data) {
      product.y.c = product.op.channels = halved(extents.groups, extents.filters);
    } else {
      product.x.n = product.y.n = halved(1, extents.images);
    }
  }
};

/// One pass of a unit on pairs.
class PairKernel final : public Kernel {
 public:
  PairKernel(const OnPairs& on_pairs, Pass pass, std::shared_ptr<Kernel> first, std::shared_ptr<Kernel> later,
             const Context& context)
      : chunk_(on_pairs.chunk),
        pass_(pass),
        extents_(on_pairs.chunk),
        chunks_(on_pairs.chunks),
        first_(std::move(first)),
        later_(std::move(later)),
        pool_(context.pool),
        set_(context.set),
        masked_(pass != Pass::forward && on_pairs.chunk.relu),
        prepared_(pass == Pass::forward && on_pairs.chunk.inference) {
    const ConvUnit& product = on_pairs.product;
    part_.x = {dense(product.x)};
    if (chunk_.add) part_.x.push_back(dense(chunk_.y));
    part_.y = part_.dy = dense(product.y);
    part_.dx = {dense(chunk_.x)};
    const std::size_t folded = chunk_.folded ? 2 : 0;  // parameters of a batch norm, and its statistics
    part_.w.resize((chunk_.op.bias ? 2 : 1) + folded);
    part_.state.resize(folded);
    part_.dw.resize(1);
    bytes_ = allocated_bytes([&](auto& memory) { place(memory); }, block_alignment);
  }

  std::size_t workspace_bytes() const override { return bytes_; }

  void run(const Args& args) override {
    if (pass_ == Pass::backward_data && !args.dx[0]) return;
    ScratchAllocator memory(args.workspace, block_alignment);
    place(memory);
    std::copy(args.w.begin(), args.w.end(), part_.w.begin());
    part_.state = args.state;
    part_.prepared = args.prepared;
    if (pass_ == Pass::backward_params) {
      if (args.dw.size() > 1 && args.dw[1]) sum_bias(args);
      if (args.dw.empty() || !args.dw[0]) return;
      part_.dw[0] = args.dw[0];
    } else if (prepared_) {
      part_.w[0].data = static_cast<float*>(args.prepared) + fold_elements<float>(chunk_);
    } else {
      make_pairs<float>(weights_, args.w[0].as<const float>(), extents_.weights(pass_), nullptr, {},
                        set_.pairs->pair_rounded, pool_);
      part_.w[0].data = weights_;
    }
    for (int k = 0; k < chunks_.count; ++k) run(args, k);
  }

 private:
  static Tensor dense(const Shape& shape) { return {nullptr, shape, DType::f32, Layout::nchw, shape.image()}; }

  /// Lays out the workspace, and binds the tensors of a chunk to it.
  void place(ScratchAllocator& memory) {
    const auto kernel_bytes = std::max(first_->workspace_bytes(), later_->workspace_bytes());
    part_.workspace = memory.take<std::byte>(static_cast<std::int64_t>(kernel_bytes));
    const auto take = [&](Tensor& tensor) { tensor.data = memory.take<float>(tensor.shape.count()); };
    if (pass_ != Pass::backward_params && !prepared_) weights_ = memory.take<float>(extents_.weights(pass_).count());
    if (pass_ != Pass::backward_data) take(part_.x[0]);
    if (pass_ == Pass::forward) take(part_.y);
    if (pass_ != Pass::forward) take(part_.dy);
    if (pass_ == Pass::backward_data) take(part_.dx[0]);
    for (std::size_t i = 1; i < part_.x.size(); ++i) part_.x[i].data = part_.y.data;  // the operand of an Add
  }

  void run(const Args& args, int k) {
    if (pass_ != Pass::backward_data) {
      const Tensor x = chunks_.part(args.x[0], k);
      const Along along = extents_.x(x.pitch, pass_);
      make_pairs<std::uint16_t>(static_cast<float*>(part_.x[0].data), x.as<const std::uint16_t>(), along, nullptr, {},
                                set_.pairs->pair, pool_);
    }
    if (pass_ != Pass::forward) {
      const Tensor dy = chunks_.part(args.dy, k), y = chunks_.part(args.y, k);
      make_pairs<std::uint16_t>(static_cast<float*>(part_.dy.data), dy.as<const std::uint16_t>(),
                                extents_.y(dy.pitch, pass_), masked_ ? y.as<const std::uint16_t>() : nullptr,
                                extents_.y(y.pitch, pass_), set_.pairs->pair, pool_);
    }
    const Tensor out = chunks_.part(pass_ == Pass::forward ? args.y : args.dx.empty() ? Tensor{} : args.dx[0], k);
    Tensor wide = pass_ == Pass::forward ? part_.y : part_.dx[0];
    wide.shape = out.shape;
    if (pass_ == Pass::forward && part_.x.size() > 1) set_.convert(wide, chunks_.part(args.x[1], k), pool_);
    if (pass_ == Pass::backward_data && chunk_.add_dx) set_.convert(wide, out, pool_);
    (k == 0 ? first_ : later_)->run(part_);
    if (pass_ != Pass::backward_params) set_.convert(out, wide, pool_);
  }

  /// The gradient of the bias: sums of dy in double, many side by side.
  void sum_bias(const Args& args) const {
    constexpr std::int64_t room = 512;
    const std::int64_t plane = extents_.y_plane;
    const auto add = [&](double* sums, std::int64_t n, std::int64_t at, std::int64_t count) {
      const auto row = [&](const Tensor& t) { return t.as<const std::uint16_t>() + n * t.pitch + at; };
      set_.pairs->add(sums, row(args.dy), masked_ ? row(args.y) : nullptr, count);
    };
    const auto put = [&](std::int64_t filter, double sum) {
      float& db = args.dw[1].as<float>()[filter];
      db = static_cast<float>(chunk_.add_dw ? static_cast<double>(db) + sum : sum);
    };
    const std::int64_t together = plane == 1 ? room : 1;  // filters
    pool_.split(args.dy.shape.c, together, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t filter = first; filter < last; filter += together) {
        const std::int64_t filters = std::min(together, last - filter), elements = filters * plane;
        double sums[room] = {};
        for (std::int64_t n = 0; n < args.dy.shape.n; ++n)
          for (std::int64_t i = 0; i < elements; i += room)
            add(sums, n, filter * plane + i, std::min(room, elements - i));
        if (plane > 1) {
          put(filter, std::accumulate(sums, sums + room, 0.0));
        } else {
          for (std::int64_t i = 0; i < filters; ++i) put(filter + i, sums[i]);
        }
      }
    });
  }

  ConvUnit chunk_;
  Pass pass_;
  Extents extents_;
  Chunks chunks_;
  std::shared_ptr<Kernel> first_, later_;
  ThreadPool& pool_;
  const InstructionSet& set_;
  bool masked_, prepared_;
  float* weights_ = nullptr;
  std::size_t bytes_ = 0;
  Args part_;  // arguments of the chunk that runs
};

/// The bound of a product of n pairs, from the bound n u / (1 - n u) of a product of n terms in f32. A pair is two
/// terms, whose products are exact in f32. AMX rounds a term less often: within its 16 pairs, then once per step.
double pair_error(double error, Pass pass) {
  const double roundings = 2 * error / (1 + error);
  const double sum = roundings < 1 ? roundings / (1 - roundings) : no_bound;
  if (pass == Pass::backward_params) return sum;
  return sum + (1 + sum) * unit_roundoff(DType::bf16);  // plus a rounding of each weight
}

}  // namespace

ConvUnit as_1x1(ConvUnit c) {
  c.x = {c.x.n, static_cast<int>(c.x.image()), 1, 1};
  c.op.kernel = 1;
  return c;
}

std::string bf16_gemm_refusal(const ConvUnit& c, Pass, const Context& context) {
  if (c.values == DType::bf16 && context.set.pairs != nullptr) return {};
  return std::string("bf16_gemm is for bf16 and needs the instruction set x86-64-v4-bf16 or x86-64-v4-amx, not ") +
         context.set.name;
}

bool bf16_gemm_pays(const ConvUnit& c, Pass pass, const Context& context) {
  if (pass == Pass::forward) return c.group_channels() > 1;
  return (pass == Pass::backward_params ? OnPairs(c, pass, context).chunks.extent : c.group_filters()) > 1;
}

Lowered::Step bf16_gemm_step(const ConvUnit& c, Pass pass, const Context& context,
                             Lowered::Step (*product)(const ConvUnit&, Pass, const Context&)) {
  OnPairs on_pairs(c, pass, context);
  Lowered::Step step = product(on_pairs.product, pass, context);
  const std::shared_ptr<Kernel> first = step.kernel;
  on_pairs.product.add_dw = true;
  const bool sums = pass == Pass::backward_params && on_pairs.chunks.count > 1;
  const std::shared_ptr<Kernel> later = sums ? product(on_pairs.product, pass, context).kernel : first;
  step.kernel = std::make_shared<PairKernel>(on_pairs, pass, first, later, context);
  step.algorithm = bf16_gemm_name;
  return step;
}

Prepared bf16_gemm_prepare(const ConvUnit& c, const Context& context) {
  const Along weights = Extents(c).weights(Pass::forward);
  const std::int64_t before = fold_elements<float>(c);
  return {static_cast<std::size_t>(before + weights.count()) * sizeof(float),
          step({Pass::prepare}, bf16_gemm_name,
               [c, weights, before, &pairs = *context.set.pairs, &pool = context.pool](const Args& args) {
                 if (c.folded) fold<float>(c, args);
                 make_pairs<float>(static_cast<float*>(args.prepared) + before, args.w[0].as<const float>(), weights,
                                   nullptr, {}, pairs.pair_rounded, pool);
               })};
}

double bf16_gemm_error(const ConvUnit& c, Pass pass, const Context& context,
                       double (*product_error)(const ConvUnit&, Pass, const Context&)) {
  const OnPairs on_pairs(c, pass, context);
  return half_error(pair_error(product_error(on_pairs.product, pass, context), pass), pass, DType::bf16,
                    on_pairs.chunks.count);
}

}  // namespace lamina::eigen
