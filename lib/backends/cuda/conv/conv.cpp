// Convolution: which algorithm runs which pass.
//
//   winograd_4x4    a quarter of the multiplications, fused; 3x3 with stride 1
//   gemm_1x1        a product that reads its factors directly from the tensors; 1x1 without padding. First, except
//                   for weight gradients of single pixels (docs/algorithms/gemm_1x1.md)
//   implicit_gemm   a product whose factors are gathered from the image; the default
//   im2col_gemm     a product by cuBLAS, after columns are written; 1x1 kernels need no columns. There is no good model
//                   of cuBLAS: the rule takes it only if ours refuse, and measuring decides
//   direct          one thread for one result, sums in double; every shape; the most exact. First for groups of few
//                   filters or channels, such as depthwise ones, where a product's tile would be mostly empty; but
//                   not for their weight gradients, which are few and long sums: implicit_gemm splits the pixels

#include "conv.h"

#include <algorithm>

#include "conv_winograd_4x4.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

std::string unit_text(const Conv& op) { return std::string(Machine::backend_name()) + ": " + to_string(Op(op)); }

/// Whether a pass has its own algorithm.
bool has_choice(Pass pass) {
  return pass == Pass::forward || pass == Pass::backward_params || pass == Pass::backward_data;
}

/// Roundings of one term on its way into a result, without that of the result: of a sum with a bias and,
/// if they follow, with a folded batch norm and an Add.
double roundings(const Conv& op, const Spec& spec, Pass pass) {
  const double kernel = static_cast<double>(op.kernel.h) * op.kernel.w;
  const int channels = spec.x[0].shape.c / op.groups, filters = op.channels / op.groups;
  switch (pass) {
    case Pass::forward: return kernel * channels + 1 + fold_roundings(conv_forward(op, spec));
    case Pass::backward_params: return static_cast<double>(spec.y.shape.n) * static_cast<double>(spec.y.shape.plane());
    default: return kernel * filters;
  }
}

/// The bound of `direct` on |computed - exact| / (sum of |terms|).
double direct_error(const Conv& op, const Spec& spec, Pass pass) {
  const double sum = (roundings(op, spec, pass) + 2) * unit_roundoff(DType::f64);
  if (spec.y.dtype == DType::f64) return sum;
  // Rounded, and again with a beta, or before if a filter was folded.
  const double twice = 2 * unit_roundoff(spec.y.dtype);
  return sum + twice / (1 - twice);
}

/// The bound of a product that sums in the element type.
double product_error(const Conv& op, const Spec& spec, Pass pass) {
  return (roundings(op, spec, pass) + 2) * unit_roundoff(spec.y.dtype);
}

bool has_narrow_groups(const Conv& op, const Spec& spec) {
  constexpr int few = 8;
  return op.groups > 1 && (op.channels / op.groups < few || spec.x[0].shape.c / op.groups < few);
}

/// Why the rule has this algorithm first.
std::string rule_text(const std::string& first, const Conv& op, const Spec& spec) {
  if (first == winograd_4x4_name) return "by its model faster than implicit_gemm";
  if (first == "direct") return "a product's tile would be mostly empty in groups of so few filters or channels";
  if (first == "gemm_1x1") return "a 1x1 kernel: its product reads the tensors directly";
  if (first != "implicit_gemm") return {};
  const std::string refused = winograd_4x4_refusal(op, spec);
  if (!refused.empty()) return "the default; " + refused;
  return spec.y.dtype == DType::f32 ? "by its model faster than winograd_4x4" : "the default; winograd_4x4 is for f32";
}

/// The algorithms for this unit, best guess first. Throws Unsupported, with the reason, if `named` cannot run it.
std::vector<Alternative> alternatives_of(const Conv& op, const Spec& spec, Pass pass, const Choice& choice,
                                         Machine* machine) {
  const std::string named = has_choice(pass) ? choice.algorithm[static_cast<std::size_t>(pass)] : "";
  std::vector<Alternative> found;
  const auto offer = [&](const char* name, double error, const std::string& refusal, auto step) {
    if (refusal.empty())
      found.push_back({name, error, [=, &op, &spec] { return step(op, spec, pass, *machine); }});
    else if (named == name)
      throw Unsupported(unit_text(op) + ", " + std::string(to_string(pass)) + ": " + refusal);
  };
  const auto offer_winograd = [&] {
    offer(winograd_4x4_name, no_bound, winograd_4x4_refusal(op, spec), winograd_4x4_step);
  };
  const bool winograd_first = winograd_4x4_pays(op, spec, pass);
  if (winograd_first) offer_winograd();
  const auto offer_1x1 = [&] {
    offer("gemm_1x1", product_error(op, spec, pass), gemm_1x1_refusal(op, spec), gemm_1x1_step);
  };
  const bool own_1x1_first = gemm_1x1_pays(op, spec, pass);
  if (own_1x1_first) offer_1x1();
  offer("implicit_gemm", product_error(op, spec, pass), implicit_gemm_refusal(op, spec), implicit_gemm_step);
  if (!own_1x1_first) offer_1x1();
  if (machine == nullptr || named == im2col_gemm_name || machine->has_blas())
    offer(im2col_gemm_name, product_error(op, spec, pass), im2col_gemm_refusal(op, spec),
          [&choice](const Conv& o, const Spec& s, Pass p, Machine& m) { return im2col_gemm_step(o, s, choice, p, m); });
  offer("direct", direct_error(op, spec, pass), {}, direct_step);
  if (!winograd_first) offer_winograd();
  if (has_narrow_groups(op, spec))
    std::stable_partition(found.begin(), found.end(), [&](const Alternative& c) {
      // A weight gradient by im2col_gemm needs a launch for every image and group.
      return pass == Pass::backward_params ? c.algorithm != im2col_gemm_name : c.algorithm == "direct";
    });
  if (!found.empty()) found.front().reason = rule_text(found.front().algorithm, op, spec);
  return found;
}

/// Adds the prepared form that the chosen forward algorithm wants, and whether y may take the Add's place.
void prepare(Lowered& lowered, const Conv& op, const Spec& spec, Machine& machine) {
  const ConvForward forward = conv_forward(op, spec);
  if (forward.adds) lowered.y_may_alias_x[1] = same_pitch(spec, 1);
  const std::string algorithm = lowered.steps[0].algorithm;
  if (algorithm == winograd_4x4_name) {
    lowered.prepared_bytes = winograd_4x4_prepared_bytes(op, spec);
    lowered.steps.push_back(winograd_4x4_step(op, spec, Pass::prepare, machine));
  } else if (forward.folded) {
    lowered.prepared_bytes = fold_bytes(forward, spec.y.dtype);
    lowered.steps.push_back(fold_step(forward, spec.y.dtype, algorithm, machine));
  }
}

}  // namespace

std::vector<std::string> conv_algorithms(const Conv& op, const Spec& spec, Pass pass) {
  if (!has_choice(pass)) return {};
  std::vector<std::string> names;
  for (const Alternative& alternative : alternatives_of(op, spec, pass, Choice{}, nullptr))
    names.push_back(alternative.algorithm);
  return names;
}

Lowered lower(const Conv& op, const Spec& spec, const Choice& choice, Machine& machine) {
  Lowered lowered = assemble(spec, [&](Pass pass) {
    return pick(unit_text(op), pass, choice, alternatives_of(op, spec, pass, choice, &machine));
  });
  if (uses(lowered, im2col_gemm_name)) machine.make_blas(spec.y.dtype);
  if (spec.mode == Mode::inference) prepare(lowered, op, spec, machine);
  return lowered;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
