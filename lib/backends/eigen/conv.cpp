// Convolution: which algorithm does which pass.
//
//   im2col_gemm   a product whose second factor is packed from the image block by block; the default
//   direct        loops over outputs with sums in double; for few channels in a group, and where exactness is wanted

#include "conv.h"

#include <algorithm>

namespace lamina::eigen {
namespace {

constexpr int few = 4;  // channels or filters of a group, below which a register tile is mostly empty

ConvProblem problem_of(const Conv& op, const Spec& spec) {
  return {.op = op,
          .x = spec.x.at(0).shape,
          .y = spec.y.shape,
          .relu = ends_in_relu(spec),
          .add_dx = !spec.adds_dx.empty() && spec.adds_dx[0],
          .add_dw = spec.adds_dw};
}

bool prefers_direct(const ConvProblem& c) {
  return c.op.groups > 1 && c.group_channels() < few && c.group_filters() < few;
}

/// Terms of one sum of a pass.
double terms(const ConvProblem& c, Pass pass) {
  const double kernel = static_cast<double>(c.op.kernel.h) * c.op.kernel.w;
  switch (pass) {
    case Pass::forward: return kernel * c.group_channels() + 1;
    case Pass::backward_params: return static_cast<double>(c.y.n) * static_cast<double>(c.y.plane());
    default: return kernel * c.group_filters();
  }
}

}  // namespace

double product_error(const ConvProblem& c, DType dtype, Pass pass) {
  return (terms(c, pass) + 2) * unit_roundoff(dtype);
}

double direct_error(const ConvProblem& c, DType dtype, Pass pass) {
  const double sum = (terms(c, pass) + 2) * unit_roundoff(DType::f64);
  return dtype == DType::f64 ? sum : sum + 2 * unit_roundoff(dtype);  // rounded once, and once more with a beta
}

std::vector<std::string> conv_algorithms(const Conv& op, const Spec& spec, Pass pass) {
  if (pass != Pass::forward && pass != Pass::backward_params && pass != Pass::backward_data) return {};
  if (prefers_direct(problem_of(op, spec))) return {"direct", "im2col_gemm"};
  return {"im2col_gemm", "direct"};
}

Lowered lower(const Conv& op, const Spec& spec, const Choice& choice, const Context& context) {
  const std::string unit = "eigen: " + to_string(Op(op));
  const ConvProblem problem = problem_of(op, spec);
  const DType dtype = spec.y.dtype;
  return assemble(spec, [&](Pass pass) {
    std::vector<Candidate> candidates = {{"im2col_gemm", product_error(problem, dtype, pass),
                                          [&, pass] { return im2col_gemm_step(problem, dtype, pass, context); }},
                                         {"direct", direct_error(problem, dtype, pass),
                                          [&, pass] { return direct_step(problem, dtype, pass, context); }}};
    if (prefers_direct(problem)) std::swap(candidates[0], candidates[1]);
    return pick(unit, pass, choice, candidates);
  });
}

}  // namespace lamina::eigen
