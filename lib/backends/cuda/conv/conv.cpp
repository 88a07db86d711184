// Convolution: which algorithm runs which pass.
//
//   depthwise       sums in registers, for groups of one channel. First for several such groups
//   winograd_4x4    a quarter of the multiplications, fused; 3x3 with stride 1
//   gemm_1x1        a product that reads its factors directly from the tensors; 1x1 without padding. First, except
//                   for weight gradients of single pixels (docs/algorithms/gemm_1x1.md)
//   implicit_gemm   a product whose factors are gathered from the image; the default
//   im2col_gemm     a product by cuBLAS, after columns are written; 1x1 kernels need no columns. There is no good model
//                   of cuBLAS: the rule takes it only if ours refuse, and measuring decides
//   direct          one thread for one result, sums in double; every shape; the most exact. First for other groups of
//                   few filters or channels, where a product's tile would be mostly empty; but not for their weight
//                   gradients, which are few and long sums: implicit_gemm splits the pixels

#include "conv.h"

#include "conv_winograd_4x4.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr const char *implicit_gemm_name = "implicit_gemm", *im2col_gemm_name = "im2col_gemm";

/// Places of the rule, from the first.
struct Place {
  static constexpr int planes = 0, narrow = 1, winograd = 2, pixels = 3, implicit = 4, single_pixels = 5, cublas = 6,
                       plain = 7, behind = 8, last = 9;
};

/// The largest number of roundings of one term before the result is rounded: in a sum with a bias and, if they follow,
/// a folded batch norm and an Add.
double roundings(const ConvUnit& c, Pass pass) {
  return terms(c, pass) + (pass == Pass::forward ? 1 + (c.folded ? 4 : 0) + (c.add ? 1 : 0) : 0);
}

/// The bound of `direct` on |computed - exact| / (sum of |terms|).
double direct_error(const ConvUnit& c, Pass pass, Machine&) {
  const double sum = (roundings(c, pass) + 2) * unit_roundoff(DType::f64);
  if (c.dtype == DType::f64) return sum;
  // Rounded once, and a second time with a beta or after the fold of a filter.
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
  // A weight gradient needs a launch for every image and group.
  return pass == Pass::backward_params && has_narrow_groups(c) ? Place::last : Place::cublas;
}

constexpr Algorithm<Machine> conv_rows[] = {
    {.name = "depthwise",
     .takes = takes_plain,
     .refusal = depthwise_refusal,
     .place = [](const ConvUnit& c, Pass, Machine&) { return c.op.groups > 1 ? Place::planes : Place::behind; },
     .max_error = product_error,
     .lower = depthwise_step,
     .prepare = folded},
    {.name = winograd_4x4_name,
     .takes = takes_plain,
     .refusal = winograd_4x4_refusal,
     .place = [](const ConvUnit& c, Pass pass,
                 Machine& machine) { return winograd_4x4_pays(c, pass, machine) ? Place::winograd : Place::behind; },
     .max_error = no_guarantee,
     .lower = winograd_4x4_step,
     .prepare = winograd_4x4_filters},
    {.name = "gemm_1x1",
     .takes = takes_plain,
     .refusal = gemm_1x1_refusal,
     .place = [](const ConvUnit& c, Pass pass,
                 Machine&) { return gemm_1x1_pays(c, pass) ? Place::pixels : Place::single_pixels; },
     .max_error = product_error,
     .lower = gemm_1x1_step,
     .prepare = folded},
    {.name = implicit_gemm_name,
     .takes = takes_plain,
     .refusal = implicit_gemm_refusal,
     .place = [](const ConvUnit&, Pass, Machine&) { return Place::implicit; },
     .max_error = product_error,
     .lower = implicit_gemm_step,
     .prepare = folded},
    {.name = im2col_gemm_name,
     .takes = takes_plain,
     .refusal = im2col_gemm_refusal,
     .place = place_of_im2col_gemm,
     .max_error = product_error,
     .lower = im2col_gemm_step,
     .prepare = folded},
    {.name = "direct",
     .takes = takes_plain,
     .refusal = runs_all,
     .place =
         [](const ConvUnit& c, Pass pass, Machine&) {
           return pass != Pass::backward_params && has_narrow_groups(c) ? Place::narrow : Place::plain;
         },
     .max_error = direct_error,
     .lower = direct_step,
     .prepare = folded}};

/// Why the rule has this algorithm first.
std::string conv_reason(const std::string& first, const ConvUnit& c, Pass pass, Machine& machine) {
  if (first == winograd_4x4_name) return "by its model faster than implicit_gemm";
  if (first == "depthwise") return "a product would be mostly empty in groups of one channel";
  if (first == "direct") return "a product's tile would be mostly empty in groups of so few filters or channels";
  if (first == "gemm_1x1") return "a 1x1 kernel: its product reads the tensors directly";
  if (first != implicit_gemm_name) return {};
  const std::string refused = winograd_4x4_refusal(c, pass, machine);
  if (!refused.empty()) return "the default; " + refused;
  return c.dtype == DType::f32 ? "by its model faster than winograd_4x4" : "the default; winograd_4x4 is for f32";
}

constexpr AlgorithmTable<Machine> conv_table{conv_rows, conv_reason};

}  // namespace

std::vector<std::string> algorithms(const Conv&, const Spec& spec, Pass pass, Machine& machine,
                                    MixedPrecisionLowering& halves) {
  return Chooser(conv_table, spec, machine, halves).names(pass);
}

Lowered lower(const Conv&, const Spec& spec, const Choice& choice, Machine& machine, MixedPrecisionLowering& halves) {
  Lowered lowered = Chooser(conv_table, spec, machine, halves).lower(choice);
  if (uses(lowered, im2col_gemm_name)) machine.make_blas(conv_unit(spec).dtype);
  return lowered;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
