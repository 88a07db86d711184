// Convolution: the algorithms of each pass.
//
//   im2col_gemm   a product whose second factor is packed from the image block by block; the default
//   im2col_eigen  columns written as a matrix, and Eigen's own product; the baseline, taken only by name
//   direct        loops over outputs with sums in double; for few channels in a group, and where exactness is wanted
//   winograd_4x4  a quarter of the multiplications; 3x3 with stride 1. The default of f32 where channels are enough
//   winograd_2x2  four ninths of them (of 5x5: 0.36), and a smaller error; 3x3 and 5x5 with stride 1. The default of
//                 5x5 in f32 where channels are enough

#include "conv.h"

#include <algorithm>

#include "batch_norm_fold.h"
#include "im2col_eigen.h"
#include "winograd.h"

namespace lamina::eigen {
namespace {

constexpr int few = 4;  // channels or filters of a group; with fewer a register tile is mostly empty

template <class T>
const T* find(const std::vector<Op>& tail) {
  for (const Op& op : tail)
    if (const T* const found = std::get_if<T>(&op)) return found;
  return nullptr;
}

ConvProblem problem_of(const Conv& op, const Spec& spec) {
  ConvProblem c{.op = op,
                .x = spec.x.at(0).shape,
                .y = spec.y.shape,
                .relu = find<Relu>(spec.tail) != nullptr,
                .add_dx = !spec.adds_dx.empty() && spec.adds_dx[0],
                .add_dw = spec.adds_dw,
                .add_y = find<Add>(spec.tail) != nullptr};
  if (const BatchNorm* const norm = find<BatchNorm>(spec.tail)) {
    c.folded = true;
    c.conv_bias = op.bias;
    c.op.bias = true;
    c.epsilon = norm->epsilon;
  }
  return c;
}

bool prefers_direct(const ConvProblem& c) {
  return c.op.groups > 1 && c.group_channels() < few && c.group_filters() < few;
}

/// Terms of one sum of a pass.
double terms(const ConvProblem& c, Pass pass) {
  const double kernel = static_cast<double>(c.op.kernel.h) * c.op.kernel.w;
  switch (pass) {
    case Pass::forward: return kernel * c.group_channels();
    case Pass::backward_params: return static_cast<double>(c.y.n) * static_cast<double>(c.y.plane());
    default: return kernel * c.group_filters();
  }
}

std::string unit_text(const Conv& op) { return "eigen: " + to_string(Op(op)); }

/// Why the rule has this algorithm first.
std::string rule_text(const std::string& first, const ConvProblem& c, DType dtype) {
  if (first == "direct") return "a register tile would be mostly empty in groups of so few channels and filters";
  if (first != "im2col_gemm") return "fewer multiplications, in f32 and with enough channels and filters";
  const std::string refused = winograd_refusal(c, 2);
  if (!refused.empty()) return "the default; Winograd " + refused;
  return dtype == DType::f32 ? "too few channels or filters for Winograd" : "the default; Winograd is for f32";
}

/// Those that can do this pass, best guess first. Throws Unsupported where the choice names one that cannot, and
/// UsageError for a name that one of them has elsewhere, with the reason.
std::vector<Alternative> alternatives_of(const ConvProblem& c, const Spec& spec, Pass pass, const Choice& choice,
                                         const Context* context) {
  const std::string& named = choice.algorithm[static_cast<std::size_t>(pass)];
  const std::string where = unit_text(c.op) + ", " + std::string(to_string(pass)) + ": ";
  if (named == "implicit_gemm")
    throw UsageError(where +
                     "implicit_gemm and im2col_gemm are one algorithm here, since columns are packed from the "
                     "image and never written as a matrix; name it im2col_gemm");
  const DType dtype = spec.y.dtype;
  const bool inference = spec.mode == Mode::inference;
  std::vector<Alternative> found = {
      {"im2col_gemm", context == nullptr ? no_bound : im2col_gemm_error(c, dtype, pass, *context),
       [=, &c] { return im2col_gemm_step(c, dtype, pass, *context); }},
      {"direct", direct_error(c, dtype, pass), [=, &c] { return direct_step(c, dtype, pass, *context); }}};
  if (prefers_direct(c)) std::swap(found[0], found[1]);
  const auto first = [&] { return winograd_pays(c, dtype) ? found.begin() : found.end(); };
  for (const int tile : {2, 4}) {  // 4x4 ends up in front of 2x2
    const std::string name = tile == 2 ? winograd_2x2_name : winograd_4x4_name;
    const std::string refused = winograd_refusal(c, tile);
    if (refused.empty())
      found.insert(first(),
                   {name, no_bound, [=, &c] { return winograd_step(c, tile, dtype, pass, inference, *context); }});
    else if (named == name)
      throw Unsupported(std::string(where).append(name).append(" ").append(refused));
  }
  if (!named.empty() || context == nullptr)  // never by rule
    found.push_back({im2col_eigen_name, context == nullptr ? no_bound : im2col_eigen_error(c, dtype, pass, *context),
                     [=, &c] { return im2col_eigen_step(c, dtype, pass, *context); }});
  found.front().reason = rule_text(found.front().algorithm, c, dtype);
  return found;
}

/// Adds what the forward pass wants prepared, by the algorithm that was taken.
void prepare(Lowered& lowered, const ConvProblem& c, DType dtype, const Context& context) {
  const std::string forward = lowered.steps[0].algorithm;
  if (forward == winograd_2x2_name || forward == winograd_4x4_name) {
    const int tile = forward == winograd_2x2_name ? 2 : 4;
    lowered.prepared_bytes = winograd_prepared_bytes(c, tile, dtype, context);
    if (lowered.prepared_bytes == 0) return;
    lowered.steps.push_back(winograd_step(c, tile, dtype, Pass::prepare, true, context));
  } else if (c.folded) {
    lowered.prepared_bytes = fold_bytes(c, dtype);
    lowered.steps.push_back(fold_step(c, forward, dtype));
  }
}

}  // namespace

double error_of_roundings(double roundings, DType dtype) {
  const double sum = roundings * unit_roundoff(dtype);
  return sum < 1 ? sum / (1 - sum) : no_bound;
}

int last_roundings(const ConvProblem& c, Pass pass) {
  switch (pass) {
    case Pass::forward: return (c.folded ? 4 : 0) + (c.op.bias ? 1 : 0) + (c.add_y ? 1 : 0);
    case Pass::backward_params: return c.add_dw ? 1 : 0;
    default: return c.add_dx ? 1 : 0;
  }
}

double direct_error(const ConvProblem& c, DType dtype, Pass pass) {
  const double sum = error_of_roundings(terms(c, pass) + last_roundings(c, pass), DType::f64);
  // Rounded once more at the end, as a folded scale was at its beginning.
  return dtype == DType::f64 ? sum : sum + error_of_roundings(2, dtype);
}

std::vector<std::string> conv_algorithms(const Conv& op, const Spec& spec, Pass pass) {
  if (pass != Pass::forward && pass != Pass::backward_params && pass != Pass::backward_data) return {};
  std::vector<std::string> names;
  for (const Alternative& alternative : alternatives_of(problem_of(op, spec), spec, pass, Choice{}, nullptr))
    names.push_back(alternative.algorithm);
  return names;
}

Lowered lower(const Conv& op, const Spec& spec, const Choice& choice, const Context& context) {
  const ConvProblem problem = problem_of(op, spec);
  Lowered lowered = assemble(spec, [&](Pass pass) {
    return pick(unit_text(op), pass, choice, alternatives_of(problem, spec, pass, choice, &context));
  });
  if (problem.add_y) lowered.y_may_alias_x[1] = same_pitch(spec, 1);
  if (spec.mode == Mode::inference) prepare(lowered, problem, spec.y.dtype, context);
  return lowered;
}

}  // namespace lamina::eigen
