// The algorithms of a convolution, and the rule that puts them in order.
//
//   depthwise sums in registers, for groups of one channel. First if there are several groups
//   winograd_4x4    a quarter of the multiplications, fused; 3x3 with stride 1
//   gemm_1x1        a product that reads its factors directly from the tensors; 1x1 without padding. First, except
//                   for weight gradients of single pixels (docs/algorithms/gemm_1x1.md)
//   implicit_gemm   a product whose factors are gathered from the image; the default
//   im2col_gemm     a product by cuBLAS, after columns are written; 1x1 kernels need no columns. There is no good model
//                   of cuBLAS, so the rule takes it only if our products refuse. A measurement may prefer it
//   direct          one thread for one result, sums in double; every shape; the most exact. First for other groups of
//                   few filters or channels, where a product's tile would be mostly empty, except for weight gradients:
//                   these are few and long sums, which implicit_gemm splits

#include "conv.h"

#include "kernels/conv/conv_1x1.h"
#include "kernels/conv/conv_depthwise.h"
#include "kernels/conv/conv_direct.h"
#include "kernels/conv/conv_implicit_gemm.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// Filter and bias of a unit with a batch norm folded, for algorithms that read them directly.
Prepared folded(const ConvUnit& c, Machine& machine) {
  if (!c.folded) return {};
  return with_type(machine.backend, c.dtype, [&]<class T>() -> Prepared {
    return {folded_bias_bytes<T>(c) + static_cast<std::size_t>(c.weights()) * sizeof(T),
            launches(machine, {Pass::prepare}, "fold", [c](Stream stream, const Args& args) {
              conv_fold(stream, fold_of<T>(c, args), prepared_filters<T>(c, args), static_cast<T*>(args.prepared));
            })};
  });
}

std::string depthwise_refusal(const ConvUnit& c, Pass, Machine&) {
  const std::string self = ConvDepthwise::name;
  if (c.group_channels() != 1)
    return self + " is for groups of one channel, not of " + std::to_string(c.group_channels());
  if (has_conv_depthwise(geometry_of(c.op))) return {};
  return self + " takes kernels of 3x3, 5x5 and 7x7 with a stride of 1 or 2 both ways and without dilation";
}

std::string gemm_1x1_refusal(const ConvUnit& c, Pass, Machine&) {
  const Conv& op = c.op;
  const auto by = [](Size size) { return std::to_string(size.h) + "x" + std::to_string(size.w); };
  if (op.kernel != Size(1)) return std::string(Conv1x1::name) + " takes 1x1 kernels, not " + by(op.kernel);
  if (op.pad != Size(0)) return std::string(Conv1x1::name) + " takes no padding, not " + by(op.pad);
  for (const Shape& shape : {c.x, c.y})
    if (shape.n * shape.plane() > conv_1x1_most)
      return limit(Conv1x1::name, "pixels of a batch", conv_1x1_most, shape.n * shape.plane());
  const std::int64_t filters = c.group_filters(), channels = c.group_channels();
  if (filters * channels > conv_1x1_most)
    return limit(Conv1x1::name, "weights of a group", conv_1x1_most, filters * channels);
  const std::int64_t blocks = conv_1x1_blocks(std::max(filters, channels), c.y.n * c.y.plane());
  if (blocks > conv_1x1_most) return limit(Conv1x1::name, "tiles of results of a group", conv_1x1_most, blocks);
  if (op.groups > conv_1x1_most_groups) return limit(Conv1x1::name, "groups", conv_1x1_most_groups, op.groups);
  return {};
}

/// Whether the models predict that gemm_1x1, where it applies, is faster than implicit_gemm.
bool gemm_1x1_pays(const ConvUnit& c, Pass pass) {
  // A weight gradient that loads single pixels needs as many instructions as implicit_gemm, which has a larger tile.
  const std::int64_t pack = 16 / static_cast<std::int64_t>(size_of(c.dtype));
  const bool packs = c.op.stride == Size(1) && c.y.plane() % pack == 0;
  return packs || pass != Pass::backward_params;
}

/// Places in the rule. The lowest comes first.
struct Place {
  static constexpr int planes = 0, narrow = 1, winograd = 2, pixels = 3, implicit = 4, single_pixels = 5, cublas = 6,
                       plain = 7, behind = 8, last = 9;
};

/// The largest number of roundings of one term before the result is rounded: those of the sum, of the bias and, if they
/// follow, of a folded batch norm and an Add.
double roundings(const ConvUnit& c, Pass pass) {
  return terms(c, pass) + (pass == Pass::forward ? 1 + (c.folded ? 4 : 0) + (c.add ? 1 : 0) : 0);
}

/// The bound of `direct` on |computed - exact| / (sum of |terms|).
double direct_error(const ConvUnit& c, Pass pass, Machine&) {
  const double sum = (roundings(c, pass) + 2) * unit_roundoff(DType::f64);
  if (c.dtype == DType::f64) return sum;
  // The result is rounded once. If it is added to old contents, or the filter is folded, there is a second rounding.
  const double twice = 2 * unit_roundoff(c.dtype);
  return sum + twice / (1 - twice);
}

/// The bound of a product that sums in the element type.
double product_error(const ConvUnit& c, Pass pass, Machine&) {
  return (roundings(c, pass) + 2) * unit_roundoff(c.dtype);
}

bool has_narrow_groups(const ConvUnit& c) {
  constexpr int few = 8;
  return c.op.groups > 1 && (c.group_filters() < few || c.group_channels() < few);
}

int place_of_im2col_gemm(const ConvUnit& c, Pass pass, Machine& machine) {
  if (!machine.has_blas()) return by_name_only;
  // A weight gradient needs a call for every image; with narrow groups its products are small.
  return pass == Pass::backward_params && has_narrow_groups(c) ? Place::last : Place::cublas;
}

constexpr Algorithm<Machine> conv_rows[] = {
    {.name = ConvDepthwise::name,
     .refusal = depthwise_refusal,
     .place = [](const ConvUnit& c, Pass, Machine&) { return c.op.groups > 1 ? Place::planes : Place::behind; },
     .max_error = product_error,
     .lower = conv_step<ConvDepthwise>},
    {.name = winograd_4x4_name,
     .refusal = winograd_4x4_refusal,
     .place = [](const ConvUnit& c, Pass pass,
                 Machine& machine) { return winograd_4x4_pays(c, pass, machine) ? Place::winograd : Place::behind; },
     .lower = winograd_4x4_step,
     .prepare = winograd_4x4_filters},
    {.name = Conv1x1::name,
     .refusal = gemm_1x1_refusal,
     .place = [](const ConvUnit& c, Pass pass,
                 Machine&) { return gemm_1x1_pays(c, pass) ? Place::pixels : Place::single_pixels; },
     .max_error = product_error,
     .lower = conv_step<Conv1x1>},
    {.name = ConvImplicitGemm::name,
     .refusal = implicit_gemm_refusal,
     .place = [](const ConvUnit&, Pass, Machine&) { return Place::implicit; },
     .max_error = product_error,
     .lower = conv_step<ConvImplicitGemm>},
    {.name = im2col_gemm_name,
     .refusal = im2col_gemm_refusal,
     .place = place_of_im2col_gemm,
     .max_error = product_error,
     .lower = im2col_gemm_step},
    {.name = ConvDirect::name,
     .place =
         [](const ConvUnit& c, Pass pass, Machine&) {
           return pass != Pass::backward_params && has_narrow_groups(c) ? Place::narrow : Place::plain;
         },
     .max_error = direct_error,
     .lower = conv_step<ConvDirect>}};

/// The reason why the rule has this algorithm first. Empty: only its place.
std::string conv_reason(const std::string& first, const ConvUnit& c, Pass pass, Machine& machine) {
  if (first == winograd_4x4_name) return "by its model faster than implicit_gemm";
  if (first == ConvDepthwise::name) return "a product would be mostly empty in groups of one channel";
  if (first == ConvDirect::name)
    return "a product's tile would be mostly empty in groups of so few filters or channels";
  if (first == Conv1x1::name) return "a 1x1 kernel: its product reads the tensors directly";
  if (first != ConvImplicitGemm::name) return {};
  const std::string refused = winograd_4x4_refusal(c, pass, machine);
  if (!refused.empty()) return "the default; " + refused;
  return c.dtype == DType::f32 ? "by its model faster than winograd_4x4" : "the default; winograd_4x4 is for f32";
}

}  // namespace

std::string implicit_gemm_refusal(const ConvUnit& c, Pass, Machine&) {
  constexpr std::int64_t most = conv_implicit_gemm_most;
  for (const Shape& shape : {c.x, c.y})
    if (shape.n * shape.plane() > most)
      return limit(ConvImplicitGemm::name, "pixels of a batch", most, shape.n * shape.plane());
  const std::int64_t filters = c.group_filters(), channels = c.group_channels();
  const std::int64_t weights = filters * c.filter_weights();
  if (weights > most) return limit(ConvImplicitGemm::name, "weights of a group", most, weights);
  if (std::max(filters, channels) > conv_implicit_gemm_most_results)
    return limit(ConvImplicitGemm::name, "filters or channels of a group", conv_implicit_gemm_most_results,
                 std::max(filters, channels));
  if (c.op.groups > conv_implicit_gemm_most_groups)
    return limit(ConvImplicitGemm::name, "groups", conv_implicit_gemm_most_groups, c.op.groups);
  return {};
}

std::int64_t implicit_gemm_cycles(const ConvUnit& c, Pass pass) {
  const ConvGeometry g = geometry_of(c.op);
  return pass == Pass::backward_data
             ? conv_implicit_gemm_data_cycles(g, empty_view<const float>(c.y), empty_view<float>(c.x))
             : conv_implicit_gemm_forward_cycles(g, empty_view<const float>(c.x), empty_view<float>(c.y));
}

constinit const AlgorithmTable<Machine> conv_table = {conv_rows, conv_reason, folded};

}  // namespace lamina::LAMINA_CUDA_SPACE
