// Convolution: its table of algorithms.
//
//   winograd_4x4  a quarter of the multiplications; 3x3 with stride 1. The default of f32 with enough channels
//   winograd_2x2  4/9 of the multiplications (5x5: 0.36), and a smaller error; 3x3 and 5x5 with stride 1. The default
//                 of 5x5 in f32 with enough channels
//   depthwise     sums over taps along the rows of planes; the default of groups of one channel, or of few if it pays
//   bf16_gemm     im2col_gemm on pairs of bf16, where the processor has an instruction for them
//   im2col_gemm   a product whose second factor is packed from the image block by block; the default
//   direct        loops over outputs with sums in double, where exactness is wanted
//   im2col_eigen  columns written as a matrix, and Eigen's own product; the baseline, taken only by name

#include "conv.h"

#include "conv_tail.h"

namespace lamina::eigen {
namespace {

/// Places in the rule. The lowest comes first.
struct Place {
  static constexpr int first = 0, ahead = 1, usual = 2, behind = 3, last = 4;
};

/// Winograd needs a quarter of the multiplications, so pairs go before it only if they are more than four times as fast
/// as f32. Such pairs also go before `depthwise`, but not in groups of four channels or less.
int place_of_pairs(const ConvUnit& c, Pass pass, const Context& context) {
  constexpr int winograd_saving = 4, depthwise_channels = 4;
  if (!bf16_gemm_pays(c, pass, context)) return by_name_only;
  const bool first = context.set.pairs->speedup > winograd_saving && c.group_channels() > depthwise_channels;
  return first ? Place::first : Place::usual;
}

bool takes_bf16(const Spec& spec, Pass pass) {
  return takes_plain(spec, pass) || (spec.y.dtype == DType::bf16 && has_one_type(spec));
}

/// Scale and bias of a folded batch norm, for algorithms that want nothing else prepared.
Prepared norm_fold(const ConvUnit& c, const Context&) {
  return with_type(c.dtype, [&]<class T>() {
    return Prepared{static_cast<std::size_t>(fold_elements<T>(c)) * sizeof(T),
                    step({Pass::prepare}, "fold", [c](const Args& args) { fold<T>(c, args); })};
  });
}

template <int Tile>
constexpr Algorithm<const Context> winograd() {
  return {
      .name = winograd_name(Tile),
      .takes = takes_bf16,
      .refusal =
          [](const ConvUnit& c, Pass, const Context&) {
            const std::string refused = winograd_refusal(c.op, Tile);
            return refused.empty() ? refused : std::string(winograd_name(Tile)) + " " + refused;
          },
      .place = [](const ConvUnit& c, Pass, const Context&) { return winograd_pays(c) ? Place::ahead : Place::last; },
      .lower = [](const ConvUnit& c, Pass pass, const Choice&,
                  const Context& context) { return winograd_step(c, Tile, pass, context); },
      .prepare = [](const ConvUnit& c, const Context& context) { return winograd_prepare(c, Tile, context); }};
}

constexpr Algorithm<const Context> conv_rows[] = {
    winograd<4>(),
    winograd<2>(),
    {.name = depthwise_name,
     .refusal = depthwise_refusal,
     .place = [](const ConvUnit& c, Pass pass,
                 const Context& context) { return depthwise_pays(c, pass, context) ? Place::ahead : Place::behind; },
     .max_error = depthwise_error,
     .lower = depthwise_step},
    {.name = bf16_gemm_name,
     .takes = [](const Spec&, Pass) { return true; },
     .refusal = bf16_gemm_refusal,
     .place = place_of_pairs,
     .max_error = [](const ConvUnit& c, Pass pass,
                     const Context& context) { return bf16_gemm_error(c, pass, context, im2col_gemm_on_pairs_error); },
     .lower = [](const ConvUnit& c, Pass pass, const Choice&,
                 const Context& context) { return bf16_gemm_step(c, pass, context, im2col_gemm_on_pairs_step); },
     .prepare = bf16_gemm_prepare},
    {.name = im2col_gemm_name,
     .place = [](const ConvUnit&, Pass, const Context&) { return Place::usual; },
     .max_error = im2col_gemm_error,
     .lower = im2col_gemm_step},
    {.name = "direct",
     .place = [](const ConvUnit&, Pass, const Context&) { return Place::behind; },
     .max_error = direct_error,
     .lower = direct_step},
    {.name = im2col_eigen_name,
     .place = [](const ConvUnit&, Pass, const Context&) { return by_name_only; },
     .max_error = im2col_eigen_error,
     .lower = im2col_eigen_step}};

/// The reason why the rule has this algorithm first.
std::string conv_reason(const std::string& first, const ConvUnit& c, Pass, const Context&) {
  if (first == bf16_gemm_name) return "the processor multiplies pairs of bf16";
  if (first == depthwise_name) return "packing costs more than it saves in these groups";
  if (first != im2col_gemm_name) return "fewer multiplications, in f32 and with enough channels and filters";
  const std::string refused = winograd_refusal(c.op, 2);
  if (!refused.empty()) return "the default; Winograd " + refused;
  return c.dtype == DType::f32 ? "too few channels, filters or tiles for Winograd" : "the default; Winograd is for f32";
}

}  // namespace

double error_of_roundings(double roundings, DType dtype) {
  const double sum = roundings * unit_roundoff(dtype);
  return sum < 1 ? sum / (1 - sum) : no_bound;
}

int last_roundings(const ConvUnit& c, Pass pass) {
  switch (pass) {
    case Pass::forward: return (c.folded ? 4 : 0) + (c.has_bias() ? 1 : 0) + (c.add ? 1 : 0);
    case Pass::backward_params: return c.add_dw ? 1 : 0;
    default: return c.add_dx ? 1 : 0;
  }
}

double direct_error(const ConvUnit& c, Pass pass, const Context&) {
  const double sum = error_of_roundings(terms(c, pass) + last_roundings(c, pass), DType::f64);
  // The result is rounded once more at the end; a folded scale was rounded when it was made.
  return c.dtype == DType::f64 ? sum : sum + error_of_roundings(2, c.dtype);
}

constinit const AlgorithmTable<const Context> conv_table = {conv_rows, conv_reason, norm_fold};

}  // namespace lamina::eigen
