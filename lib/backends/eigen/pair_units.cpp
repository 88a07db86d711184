// A unit that is a product runs the algorithm of f32 on pairs of bf16, which are as large as numbers of f32: the
// dimension that its sums run over is halved. This is, in a forward pass, x's channels; in a data gradient, y's; in a
// weight gradient, the images of both. So all of packing, strides, taps and threads is that of f32. Only the tiles of
// the product, and what is done here, know pairs: neighbours along that dimension are interleaved, the last one of an
// odd count with 0. Weights are rounded to bf16 on the way, and dy is masked by y.
//
// The results are of f32. y and dx are rounded as in lower_halves.cpp, also in chunks.

#include "pair_units.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <variant>

#include "bf16_winograd.h"
#include "lib/backends/half/chunks.h"
#include "lib/core/units/spec_passes.h"
#include "lib/core/units/unit_memory.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t run_elements = 4096;  // that a thread pairs at once

MicroKernels<float> products_of(const InstructionSet& set) {
  MicroKernels<float> products = set.f32;
  if (set.pairs == nullptr) return products;
  for (int half = 0; half < 2; ++half) {
    std::copy_n(set.pairs->tile[half], products.max_vectors, products.tile[half]);
    std::copy_n(set.pairs->non_temporal_tile[half], products.max_vectors, products.non_temporal_tile[half]);
  }
  return products;
}

/// Where the elements are whose neighbours along a dimension become pairs. Those of the dimension's index e are the
/// `inner` ones from e * stride on; that in each of `groups` groups, one after the other, of each of `outer` parts.
struct Along {
  std::int64_t outer, pitch, groups, extent, stride, inner;

  std::int64_t pairs() const { return divide_up(extent, std::int64_t{2}); }  // along the dimension
  std::int64_t count() const { return outer * groups * pairs() * inner; }
  /// The first element of index e of a group; groups are counted through all parts.
  std::int64_t at(std::int64_t group, std::int64_t e) const {
    return group / groups * pitch + (group % groups * extent + e) * stride;
  }
};

/// The pairs of `from`, dense, group by group. With a mask, which is laid out `like`, numbers count where it is above
/// 0.
template <class From>
void make_pairs(float* to, const From* from, const Along& along, const std::uint16_t* mask, const Along& like,
                void (*pair)(float*, const PairSource<From>&, std::int64_t), Pool& pool) {
  const bool neighbours = along.inner == 1 && along.stride == 1;  // a group is then one row
  const std::int64_t pairs = neighbours ? 1 : along.pairs(), step = neighbours ? 2 : 1;
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
        return data == nullptr ? nullptr : data + in.at(group, e + second) + start * step;
      };
      const std::int64_t have_second = neighbours ? along.extent / 2 - start : e + 1 < along.extent ? count : 0;
      PairSource<From> source{.first = place(from, along, 0),
                              .second = nullptr,
                              .second_count = std::clamp<std::int64_t>(have_second, 0, count),
                              .step = step,
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

/// The extents of a product, as a convolution has them.
struct Extents {
  std::int64_t images, groups, channels, filters, x_plane, y_plane, taps;  // channels and filters of a group

  explicit Extents(const Spec& spec) : images(spec.y.shape.n), groups(1) {
    const Shape &x = spec.x[0].shape, &y = spec.y.shape;
    if (const auto* const conv = std::get_if<Conv>(&spec.op)) {
      groups = conv->groups;
      channels = x.c / groups;
      x_plane = x.plane();
      taps = std::int64_t{conv->kernel.h} * conv->kernel.w;
    } else {
      channels = x.image();
      x_plane = taps = 1;
    }
    filters = y.c / groups;
    y_plane = y.plane();
  }

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

/// The unit of f32 that a pass of this one is on pairs. Its other passes are not used, nor are the shapes of
/// parameters.
Spec on_pairs(Spec part, Pass pass) {
  const Extents extents(part);
  if (pass != Pass::forward) part.tail.clear();
  if (pass == Pass::forward) {
    const bool is_conv = std::holds_alternative<Conv>(part.op);
    Shape& x = part.x[0].shape;
    x = {x.n, halved(extents.groups, extents.channels), is_conv ? x.h : 1, is_conv ? x.w : 1};
  } else if (pass == Pass::backward_data) {
    part.y.shape.c = halved(extents.groups, extents.filters);
  } else {
    part.x[0].shape.n = part.y.shape.n = halved(1, extents.images);
  }
  if (auto* const conv = std::get_if<Conv>(&part.op)) {
    conv->channels = part.y.shape.c;
  } else {
    std::get<FullyConnected>(part.op).outputs = part.y.shape.c;
  }
  for (TensorSpec* const tensor : {&part.x[0], &part.y}) tensor->pitch = tensor->gradient_pitch = tensor->shape.image();
  return part;
}

bool is_masked(const Spec& spec, Pass pass) { return pass != Pass::forward && ends_in_relu(spec); }

/// One pass of a unit on pairs.
class PairKernel final : public Kernel {
 public:
  PairKernel(const Spec& spec, Pass pass, const Chunks& chunks, std::shared_ptr<Kernel> first,
             std::shared_ptr<Kernel> later, HalfUnits& halves, const Context& context)
      : part_spec_(in_f32(spec_of_chunk(spec, chunks))),
        pass_(pass),
        extents_(part_spec_),
        chunks_(chunks),
        first_(std::move(first)),
        later_(std::move(later)),
        halves_(halves),
        pool_(context.pool),
        pairs_(*context.set.pairs),
        masked_(is_masked(spec, pass)),
        adds_dx_(adds_dx(spec, 0)),
        adds_dw_(spec.adds_dw) {
    const Spec paired = on_pairs(part_spec_, pass);
    part_.x.resize(spec.x.size());
    part_.dx.resize(1);
    for (std::size_t i = 0; i < spec.x.size(); ++i) part_.x[i] = tensor_of(i == 0 ? paired.x[0] : part_spec_.x[i]);
    part_.y = tensor_of(paired.y);
    part_.dy = part_.y;
    part_.dx[0] = tensor_of(part_spec_.x[0]);
    part_.w.resize(spec.w.size());
    part_.state.resize(spec.state.size());
    part_.dw.resize(1);
    ScratchAllocator counter(nullptr, block_alignment);
    place(counter);
    bytes_ = counter.used_bytes();
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
    } else {
      make_pairs<float>(weights_, args.w[0].as<const float>(), extents_.weights(pass_), nullptr, {},
                        pairs_.pair_rounded, pool_);
      part_.w[0].data = weights_;
    }
    for (int k = 0; k < chunks_.count; ++k) run(args, k);
  }

 private:
  static Tensor tensor_of(const TensorSpec& spec) {
    return {nullptr, spec.shape, DType::f32, Layout::nchw, spec.shape.image()};
  }

  /// Lays out the workspace, and binds the tensors of a chunk to it.
  void place(ScratchAllocator& memory) {
    const auto kernel_bytes = std::max(first_->workspace_bytes(), later_->workspace_bytes());
    part_.workspace = memory.take<std::byte>(static_cast<std::int64_t>(kernel_bytes));
    const auto take = [&](Tensor& tensor) { tensor.data = memory.take<float>(tensor.shape.count()); };
    if (pass_ != Pass::backward_params) weights_ = memory.take<float>(extents_.weights(pass_).count());
    if (pass_ != Pass::backward_data) take(part_.x[0]);
    if (pass_ == Pass::forward) take(part_.y);
    if (pass_ != Pass::forward) take(part_.dy);
    if (pass_ == Pass::backward_data) take(part_.dx[0]);
    for (std::size_t i = 1; i < part_.x.size(); ++i) part_.x[i].data = part_.y.data;  // what an Add adds to
  }

  void run(const Args& args, int k) {
    if (pass_ != Pass::backward_data) {
      const Tensor x = chunks_.part(args.x[0], k);
      const Along along = extents_.x(x.pitch, pass_);
      make_pairs<std::uint16_t>(static_cast<float*>(part_.x[0].data), x.as<const std::uint16_t>(), along, nullptr, {},
                                pairs_.pair, pool_);
    }
    if (pass_ != Pass::forward) {
      const Tensor dy = chunks_.part(args.dy, k), y = chunks_.part(args.y, k);
      make_pairs<std::uint16_t>(static_cast<float*>(part_.dy.data), dy.as<const std::uint16_t>(),
                                extents_.y(dy.pitch, pass_), masked_ ? y.as<const std::uint16_t>() : nullptr,
                                extents_.y(y.pitch, pass_), pairs_.pair, pool_);
    }
    const Tensor out = chunks_.part(pass_ == Pass::forward ? args.y : args.dx.empty() ? Tensor{} : args.dx[0], k);
    const Tensor& wide = pass_ == Pass::forward ? part_.y : part_.dx[0];
    if (pass_ == Pass::forward && part_.x.size() > 1) halves_.convert(wide, chunks_.part(args.x[1], k));
    if (pass_ == Pass::backward_data && adds_dx_) halves_.convert(wide, out);
    (k == 0 ? first_ : later_)->run(part_);
    if (pass_ != Pass::backward_params) halves_.convert(out, wide);
  }

  /// The gradient of the bias: sums of dy in double, each of many side by side.
  void sum_bias(const Args& args) const {
    constexpr std::int64_t room = 512;
    const std::int64_t plane = extents_.y_plane;
    const auto add = [&](double* sums, std::int64_t n, std::int64_t at, std::int64_t count) {
      const auto row = [&](const Tensor& t) { return t.as<const std::uint16_t>() + n * t.pitch + at; };
      pairs_.add(sums, row(args.dy), masked_ ? row(args.y) : nullptr, count);
    };
    const auto put = [&](std::int64_t filter, double sum) {
      float& db = args.dw[1].as<float>()[filter];
      db = static_cast<float>(adds_dw_ ? static_cast<double>(db) + sum : sum);
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

  Spec part_spec_;  // of a chunk, in f32
  Pass pass_;
  Extents extents_;
  Chunks chunks_;
  std::shared_ptr<Kernel> first_, later_;
  HalfUnits& halves_;
  Pool& pool_;
  const PairKernels& pairs_;
  bool masked_, adds_dx_, adds_dw_;
  float* weights_ = nullptr;
  std::size_t bytes_ = 0;
  Args part_;  // of the chunk that runs
};

/// The name of the algorithm of f32 that runs on pairs.
const char* product_name(const Spec& spec) { return std::holds_alternative<Conv>(spec.op) ? "im2col_gemm" : "gemm"; }

/// The bound of a product of pairs, from that of a product of f32 with as many terms as it has pairs: n u / (1 - n u).
/// A pair is two terms. Products of two numbers of bf16 are exact in f32.
double pair_error(double error, Pass pass) {
  const double roundings = 2 * error / (1 + error);
  const double sum = roundings < 1 ? roundings / (1 - roundings) : no_bound;
  if (pass == Pass::backward_params) return sum;
  return sum + (1 + sum) * unit_roundoff(DType::bf16);  // of each weight
}

}  // namespace

PairUnits::PairUnits(const Context& context, HalfUnits& halves)
    : context_(context),
      halves_(halves),
      products_(products_of(context.set)),
      set_{.name = context.set.name,
           .f32 = products_,
           .f64 = context.set.f64,
           .f32_6x2 = products_,
           .f64_6x2 = context.set.f64_6x2,
           .sums_f32 = context.set.sums_f32,
           .sums_f64 = context.set.sums_f64,
           .lower = context.set.lower,
           .algorithms = context.set.algorithms,
           .update = context.set.update,
           .check_overflow = context.set.check_overflow,
           .convert = context.set.convert},
      on_pairs_{context.pool, set_} {}

bool PairUnits::takes(const Spec& spec) const {
  return context_.set.pairs != nullptr &&
         (std::holds_alternative<Conv>(spec.op) || std::holds_alternative<FullyConnected>(spec.op)) && is_of_bf16(spec);
}

Lowered::Step PairUnits::step(const Spec& spec, Pass pass) {
  const Chunks chunks(spec, true, halves_, pass == Pass::backward_params ? 2 : 1);
  Spec paired = on_pairs(in_f32(spec_of_chunk(spec, chunks)), pass);
  const char* const product = product_name(spec);
  const auto lower = [&] {
    const Lowered lowered = set_.lower(paired, {.algorithm = {product, product, product}}, on_pairs_);
    return *find_step(lowered, pass);
  };
  Lowered::Step step = lower();
  const std::shared_ptr<Kernel> first = step.kernel;
  paired.adds_dw = true;
  const std::shared_ptr<Kernel> later = pass == Pass::backward_params && chunks.count > 1 ? lower().kernel : first;
  step.kernel = std::make_shared<PairKernel>(spec, pass, chunks, first, later, halves_, context_);
  step.algorithm = bf16_gemm_name;
  step.max_error = half_error(pair_error(step.max_error, pass), step, DType::bf16, chunks.count);
  return step;
}

/// Whether the rule has products of pairs for a pass rather than this step.
bool PairUnits::is_better(const Spec& spec, Pass pass, const Lowered::Step& than) const {
  const Extents extents(spec);
  // A weight is multiplied once for each image. For few of them rounding it costs more than the product saves.
  const bool few_uses = std::holds_alternative<FullyConnected>(spec.op) && extents.images < 32;
  if (pass == Pass::forward && few_uses) return false;
  const std::int64_t summed = pass == Pass::forward           ? extents.channels
                              : pass == Pass::backward_params ? Chunks(spec, true, halves_, 2).extent
                                                              : extents.filters;
  return summed > 1 && than.algorithm == product_name(spec);
}

Lowered PairUnits::lower(const Spec& spec, const Choice& choice) {
  // A product of f32 stands in for a pass that is to be bf16_gemm. The limits do not hold for it.
  Choice stand_in = choice, others = choice;
  bool stands_in = false;
  for (std::size_t pass = 0; pass < choice.algorithm.size(); ++pass) {
    if (choice.algorithm[pass] != bf16_gemm_name) continue;
    if (!takes(spec))
      throw Unsupported("eigen: " + to_string(spec.op) + ", " + std::string(to_string(static_cast<Pass>(pass))) +
                        ": bf16_gemm is for bf16 and needs the instruction set x86-64-v4-bf16, not " +
                        context_.set.name);
    others.algorithm[pass].clear();
    stand_in.algorithm[pass] = product_name(spec);
    stands_in |= wants(spec, static_cast<Pass>(pass));
  }
  if (stands_in) {
    stand_in.max_error = no_bound;
    stand_in.workspace_limit = std::numeric_limits<std::size_t>::max();
  }
  Lowered lowered = lower_with_bf16_winograd(spec, stand_in, halves_, context_);
  if (!takes(spec)) return lowered;
  for (Lowered::Step& step : lowered.steps) {
    const Pass pass = step.passes.front();
    if (pass == Pass::prepare) {
      step.algorithm = lowered.steps.front().algorithm;  // forward's
      continue;
    }
    const std::string& named = choice.algorithm[static_cast<std::size_t>(pass)];
    if (named != bf16_gemm_name && stands_in) {
      const Lowered limited = lower_with_bf16_winograd(spec, others, halves_, context_);
      step = *find_step(limited, pass);
    }
    if (named.empty() ? !is_better(spec, pass, step) : named != bf16_gemm_name) continue;
    Lowered::Step pairs = this->step(spec, pass), other = step;
    const char* const reason = "the processor multiplies pairs of bf16";
    step = pick("eigen: " + to_string(spec.op), pass, choice,
                {{bf16_gemm_name, pairs.max_error, [&] { return pairs; }, reason},
                 {other.algorithm, other.max_error, [&] { return other; }}});
  }
  return lowered;
}

}  // namespace lamina::eigen
