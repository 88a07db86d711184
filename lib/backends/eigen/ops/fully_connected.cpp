// Fully connected: products whose speed is bounded by reading or writing every weight once per pass.
//
// gemm, forward           y^T = w * x^T: threads share the outputs; x^T is packed, w is read in place
// gemm, backward_data     dx = dy * w: threads share the features; w is packed a block of rows at a time
// gemm, backward_params   dw = dy^T * x: threads share the outputs; x is packed
// bf16_gemm               the same products on pairs of bf16: conv/bf16_gemm.cpp
// direct                  the convolution whose kernel is the whole plane, by its definition

#include <algorithm>
#include <type_traits>
#include <utility>

#include "lib/backends/common/algorithms.h"
#include "lib/backends/eigen/conv/conv_tail.h"
#include "lib/backends/eigen/gemm/gemm.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t packed_bytes = 256 * 1024;  // one packed block

template <class T>
class FullyConnectedProduct {
 public:
  FullyConnectedProduct(const ConvUnit& c, int threads, const MicroKernels<T>& kernels)
      : c_(c), threads_(threads), kernels_(&kernels), images_(c.x.n), features_(c.x.image()), outputs_(c.y.c) {}

  std::size_t workspace_bytes(Pass pass) const {
    return allocated_bytes([&](auto& shared) { allocate_shared(pass, shared); }) +
           static_cast<std::size_t>(threads_) * part_bytes(pass);
  }

  /// A term is rounded once for itself, for each later term of its block, for each later block, and at the end.
  double error(Pass pass) const {
    const auto roundings = [](std::int64_t depth, std::int64_t block, bool last) {
      return static_cast<double>(block + divide_up(depth, block) - 1 + (last ? 1 : 0));
    };
    constexpr DType dtype = std::is_same_v<T, float> ? DType::f32 : DType::f64;
    switch (pass) {
      case Pass::forward: return error_of_roundings(roundings(features_, feature_block(), c_.op.bias), dtype);
      case Pass::backward_params: return error_of_roundings(roundings(images_, depth_block(images_), c_.add_dw), dtype);
      default: return error_of_roundings(roundings(outputs_, depth_block(outputs_), c_.add_dx), dtype);
    }
  }

  void forward(const Args& args, const ConvTail<T>& tail, ThreadPool& pool) const {
    const Epilogue<T> epilogue = epilogue_of(c_, args, tail);
    pool.run([&](int part) {
      const IndexRange own = share_of(outputs_, kernels_->rows, part, threads_);
      if (own.first == own.last) return;
      const Buffers buffers = buffers_of(Pass::forward, part, args);
      const std::int64_t block = feature_block(), ldb = image_width(), panel_stride = block * ldb;
      for (std::int64_t k = 0; k < features_; k += block) {
        const std::int64_t depth = std::min(block, features_ - k);
        for (std::int64_t n = 0; n < images_; n += width()) {
          T* const panel = buffers.panels + n / width() * panel_stride;
          const std::int64_t count = std::min(width(), images_ - n);
          if (count < ldb) std::fill(panel, panel + depth * ldb, T{0});
          kernels_->transpose(panel, ldb, args.x[0].as<T>() + n * args.x[0].pitch + k, args.x[0].pitch, nullptr, 0,
                              count, depth);
        }
        multiply(Block<T>{.kernels = kernels_,
                          .rows = own.last - own.first,
                          .depth = depth,
                          .a = {args.w[0].as<T>() + own.first * features_ + k, features_},
                          .b = {list_panels<T>(*kernels_, buffers.panels, panel_stride, padded_images(), buffers.sums,
                                               buffers.list),
                                ldb},
                          .c = {padded_images()},
                          .along = {.begins = k == 0},
                          .ahead = {.a = true}},
                 RowMajor<T>{buffers.sums, padded_images(), kernels_});
      }
      const std::int64_t count = own.last - own.first;
      kernels_->transpose(args.y.as<T>() + own.first, args.y.pitch, buffers.sums, padded_images(), nullptr, 0, count,
                          images_);
      for (std::int64_t n = 0; n < images_; ++n) {
        T* const y = args.y.as<T>() + n * args.y.pitch + own.first;
        for (std::int64_t k = 0; epilogue.bias != nullptr && k < count; ++k) y[k] += epilogue.bias[own.first + k];
        for (std::int64_t k = 0; k < count; ++k) y[k] = epilogue.bounded(y[k]);
        activate(epilogue, y, 0, 1, count);
      }
    });
  }

  void backward_data(const Args& args, ThreadPool& pool) const {
    const Tensor& dx = args.dx[0];
    if (!dx) return;
    const T* dy = args.dy.as<T>();
    std::int64_t dy_pitch = args.dy.pitch;
    if (c_.relu) {
      ScratchAllocator shared(args.workspace);
      T* const masked = allocate_shared(Pass::backward_data, shared);
      for (std::int64_t n = 0; n < images_; ++n) {
        const T* const y = args.y.as<T>() + n * args.y.pitch;
        for (std::int64_t k = 0; k < outputs_; ++k) masked[n * outputs_ + k] = y[k] > 0 ? dy[n * dy_pitch + k] : T{0};
      }
      dy = masked;
      dy_pitch = outputs_;
    }
    pool.run([&](int part) {
      const IndexRange own = share_of(features_, width(), part, threads_);
      if (own.first == own.last) return;
      multiply_blocks(
          {.kernels = kernels_, .rows = images_, .a = {dy, dy_pitch}, .c = {dx.pitch}, .epilogue = {.add = c_.add_dx}},
          args.w[0].as<T>(), features_, outputs_, own, dx.as<T>(), buffers_of(Pass::backward_data, part, args));
    });
  }

  void backward_params(const Args& args, ThreadPool& pool) const {
    T* const dw = args.dw.empty() ? nullptr : args.dw[0].as<T>();
    T* const db = args.dw.size() < 2 ? nullptr : args.dw[1].as<T>();
    ScratchAllocator shared(args.workspace);
    T* const dy = allocate_shared(Pass::backward_params, shared);
    pool.run([&](int part) {
      const IndexRange own = share_of(outputs_, kernels_->rows, part, threads_);
      if (own.first == own.last) return;
      kernels_->transpose(dy + own.first * images_, images_, args.dy.as<T>() + own.first, args.dy.pitch,
                          c_.relu ? args.y.as<T>() + own.first : nullptr, args.y.pitch, images_, own.last - own.first);
      if (db != nullptr) sum_bias(dy, own, db);
      if (dw == nullptr) return;
      multiply_blocks({.kernels = kernels_,
                       .rows = own.last - own.first,
                       .a = {dy + own.first * images_, images_},
                       .c = {features_},
                       .epilogue = {.add = c_.add_dw},
                       .ahead = {.c = true}},
                      args.x[0].as<T>(), args.x[0].pitch, images_, {0, features_}, dw + own.first * features_,
                      buffers_of(Pass::backward_params, part, args));
    });
  }

 private:
  struct Buffers {
    T* panels;
    T* sums;  // forward: outputs of the part x images
    Segment* segments;
    Panel<T>* list;
  };

  std::int64_t width() const { return kernels_->width(); }
  std::int64_t padded_images() const { return round_up(images_, kernels_->lanes); }
  std::int64_t image_width() const { return std::min(width(), padded_images()); }  // width of a panel of images
  std::int64_t image_panels() const { return divide_up(images_, width()); }

  /// forward: features packed at once.
  std::int64_t feature_block() const {
    const std::int64_t fit = packed_bytes / static_cast<std::int64_t>(sizeof(T)) / (image_panels() * image_width());
    return std::min(features_, std::clamp<std::int64_t>(fit, 128, 2048));
  }
  /// backward: columns of w or dw in a packed block. With panels of one line (6 by 2 tiles) blocks are half as wide
  /// and twice as deep: they write c, or add to it, less often.
  std::int64_t column_block() const {
    const std::int64_t most = width() * static_cast<std::int64_t>(sizeof(T)) == line_bytes ? 512 : 1024;
    return std::min(round_up(features_, width()), most / width() * width());
  }
  std::int64_t depth_block() const { return packed_bytes / static_cast<std::int64_t>(sizeof(T)) / column_block(); }
  std::int64_t depth_block(std::int64_t depth) const {
    return std::min(depth, std::max<std::int64_t>(1, depth_block()));
  }

  Buffers allocate(Pass pass, ScratchAllocator& scratch) const {
    Buffers buffers{};
    switch (pass) {
      case Pass::forward:
        buffers.panels = scratch.take<T>(image_panels() * image_width() * feature_block());
        buffers.sums = scratch.take<T>(round_up(divide_up(outputs_, threads_), kernels_->rows) * padded_images());
        break;
      case Pass::backward_params: buffers.panels = scratch.take<T>(column_block() * depth_block(images_)); break;
      default: buffers.panels = scratch.take<T>(column_block() * depth_block(outputs_)); break;
    }
    buffers.segments = scratch.take<Segment>(column_block() / width());
    buffers.list = scratch.take<Panel<T>>(std::max(column_block() / width(), image_panels()));
    return buffers;
  }
  /// The masked dy: {images, outputs} for the data gradient, {outputs, images} for the weight gradient.
  T* allocate_shared(Pass pass, ScratchAllocator& scratch) const {
    const bool needed = pass == Pass::backward_params || (pass == Pass::backward_data && c_.relu);
    return scratch.take<T>(needed ? images_ * outputs_ : 0);
  }
  std::size_t part_bytes(Pass pass) const {
    return allocated_bytes([&](auto& scratch) { allocate(pass, scratch); });
  }
  Buffers buffers_of(Pass pass, int part, const Args& args) const {
    ScratchAllocator shared(args.workspace);
    allocate_shared(pass, shared);
    ScratchAllocator own = shared.part(part, part_bytes(pass));
    return allocate(pass, own);
  }

  /// Backward: multiplies by `columns` of b, a row-major matrix of `depth` rows that is packed a block at a time.
  /// `block` has the first factor and the product's options, `c` is the place of column 0.
  void multiply_blocks(Block<T> block, const T* b, std::int64_t ldb, std::int64_t depth, IndexRange columns, T* c,
                       const Buffers& buffers) const {
    const T* const a = block.a.data;
    const std::int64_t most = depth_block(depth), panel_stride = most * width();
    for (std::int64_t j = columns.first; j < columns.last; j += column_block()) {
      const std::int64_t count = std::min(column_block(), columns.last - j);
      for (std::int64_t k = 0; k < depth; k += most) {
        block.depth = std::min(most, depth - k);
        pack_rows(b + k * ldb + j, ldb, block.depth, count, panel_stride, buffers);
        block.a.data = a + k;
        block.b = {list_panels<T>(*kernels_, buffers.panels, panel_stride, count, c + j, buffers.list), width()};
        block.along.begins = k == 0;
        multiply(block, RowMajor<T>{c + j, block.c.ld, kernels_});
      }
    }
  }

  /// Packs `depth` rows of a row-major matrix, `columns` elements of each.
  void pack_rows(const T* from, std::int64_t ld, std::int64_t depth, std::int64_t columns, std::int64_t panel_stride,
                 const Buffers& buffers) const {
    std::int64_t count = 0;
    for (std::int64_t j = 0; j < columns; j += width()) {
      buffers.segments[count++] = {j / width() * panel_stride, j, std::min(width(), columns - j)};
    }
    if (columns % width() != 0) {
      T* const last = buffers.panels + columns / width() * panel_stride;
      std::fill(last, last + depth * width(), T{0});
    }
    constexpr std::int64_t distance = 2;  // rows
    for (std::int64_t k = 0; k < depth; ++k) {
      kernels_->copy_exact(buffers.panels + k * width(), from + k * ld, buffers.segments, count, distance * ld);
    }
  }

  /// The bias gradient of these outputs: sums of dy, which is {outputs, images}, image by image.
  void sum_bias(const T* dy, IndexRange outputs, T* db) const {
    constexpr std::int64_t together = 8;  // independent sums; a single sum waits for its own additions
    for (std::int64_t k = outputs.first; k < outputs.last; k += together) {
      const std::int64_t count = std::min(together, outputs.last - k);
      double sums[together] = {};
      if (c_.add_dw) std::copy_n(db + k, count, sums);
      for (std::int64_t n = 0; n < images_; ++n) {
        for (std::int64_t i = 0; i < together; ++i) {
          sums[i] += static_cast<double>(dy[(k + std::min(i, count - 1)) * images_ + n]);
        }
      }
      for (std::int64_t i = 0; i < count; ++i) db[k + i] = static_cast<T>(sums[i]);
    }
  }

  ConvUnit c_;
  int threads_;
  const MicroKernels<T>* kernels_;
  std::int64_t images_, features_, outputs_;
};

/// The micro-kernels of a pass. With few images, memory limits the backward passes, and wide panels are faster.
template <class T>
const MicroKernels<T>& kernels_of(const ConvUnit& problem, Pass pass, const Context& context) {
  constexpr int few_images = 64;
  return pass != Pass::forward && problem.x.n <= few_images ? context.set.of<T>().kernels
                                                            : context.set.of<T>().kernels_6x2;
}

template <class T>
Lowered::Step gemm_step(const ConvUnit& c, Pass pass, const Context& context, const MicroKernels<T>& kernels) {
  ThreadPool& pool = context.pool;
  FullyConnectedProduct<T> product(c, pool.threads(), kernels);
  const std::size_t bytes = product.workspace_bytes(pass);
  return step(
      {pass}, "gemm",
      [product = std::move(product), pass, &pool, tail = ConvTail<T>(c, context.set)](const Args& args) {
        switch (pass) {
          case Pass::forward: return product.forward(args, tail, pool);
          case Pass::backward_params: return product.backward_params(args, pool);
          default: return product.backward_data(args, pool);
        }
      },
      bytes);
}

/// The place of bf16_gemm. A weight is multiplied once per image. With few images, rounding the weights in a pass costs
/// more than pairs save.
int place_of_pairs(const ConvUnit& c, Pass pass, const Context& context) {
  constexpr int few_images = 32;
  if (pass == Pass::forward && !c.inference && c.x.n < few_images) return by_name_only;
  return bf16_gemm_pays(as_1x1(c), pass, context) ? 0 : by_name_only;
}

constexpr Algorithm<const Context> connected_rows[] = {
    {.name = bf16_gemm_name,
     .takes = [](const Spec&, Pass) { return true; },
     .refusal = bf16_gemm_refusal,
     .place = place_of_pairs,
     .max_error =
         [](const ConvUnit& c, Pass pass, const Context& context) {
           return bf16_gemm_error(as_1x1(c), pass, context, [](const ConvUnit& pairs, Pass p, const Context& on) {
             return FullyConnectedProduct<float>(pairs, on.pool.threads(), *on.set.f32_pairs).error(p);
           });
         },
     .lower =
         [](const ConvUnit& c, Pass pass, const Choice&, const Context& context) {
           return bf16_gemm_step(as_1x1(c), pass, context, [](const ConvUnit& pairs, Pass p, const Context& on) {
             return gemm_step<float>(pairs, p, on, *on.set.f32_pairs);
           });
         },
     .prepare = [](const ConvUnit& c, const Context& context) { return bf16_gemm_prepare(as_1x1(c), context); }},
    {.name = "gemm",
     .place = [](const ConvUnit&, Pass, const Context&) { return 1; },
     .max_error =
         [](const ConvUnit& c, Pass pass, const Context& context) {
           return with_type(c.dtype, [&]<class T>() {
             return FullyConnectedProduct<T>(c, context.pool.threads(), kernels_of<T>(c, pass, context)).error(pass);
           });
         },
     .lower =
         [](const ConvUnit& c, Pass pass, const Choice&, const Context& context) {
           return with_type(c.dtype,
                            [&]<class T>() { return gemm_step<T>(c, pass, context, kernels_of<T>(c, pass, context)); });
         }},
    {.name = "direct",
     .place = [](const ConvUnit&, Pass, const Context&) { return 2; },
     .max_error = direct_error,
     .lower = direct_step}};

std::string connected_reason(const std::string& first, const ConvUnit&, Pass, const Context&) {
  return first == bf16_gemm_name ? "the processor multiplies pairs of bf16" : "";
}

}  // namespace

constinit const AlgorithmTable<const Context> connected_table = {connected_rows, connected_reason};

}  // namespace lamina::eigen
