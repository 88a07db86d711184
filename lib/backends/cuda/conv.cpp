// Convolution: which algorithm does which pass.
//
//   winograd_4x4    a quarter of the multiplications, fused; forward and data gradient of 3x3 with stride 1
//   direct          one thread for one result, sums in double; every shape, and the exact one

#include "conv.h"

#include "conv_winograd_4x4.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// Terms of one sum of a pass.
double terms(const Conv& op, const Spec& spec, Pass pass) {
  const double kernel = static_cast<double>(op.kernel.h) * op.kernel.w;
  switch (pass) {
    case Pass::forward: return kernel * (spec.x[0].shape.c / op.groups) + 1;
    case Pass::backward_params: return static_cast<double>(spec.y.shape.n) * static_cast<double>(spec.y.shape.plane());
    default: return kernel * (op.channels / op.groups);
  }
}

/// What `direct` guarantees of |computed - exact| / (sum of |terms|).
double direct_error(const Conv& op, const Spec& spec, Pass pass) {
  const double sum = (terms(op, spec, pass) + 2) * unit_roundoff(DType::f64);
  return spec.y.dtype == DType::f64 ? sum : sum + 2 * unit_roundoff(spec.y.dtype);  // rounded, and again with a beta
}

/// Best guess first.
std::vector<Candidate> candidates_of(const Conv& op, const Spec& spec, Pass pass, Machine* machine) {
  std::vector<Candidate> candidates = {
      {"direct", direct_error(op, spec, pass), [=, &op, &spec] { return direct_step(op, spec, pass, *machine); }}};
  if (winograd_4x4_refusal(op, pass).empty())
    candidates.insert(
        winograd_4x4_pays(op, spec, pass) ? candidates.begin() : candidates.end(),
        {winograd_4x4_name, no_bound, [=, &op, &spec] { return winograd_4x4_step(op, spec, pass, *machine); }});
  return candidates;
}

}  // namespace

std::vector<std::string> conv_algorithms(const Conv& op, const Spec& spec, Pass pass) {
  if (pass != Pass::forward && pass != Pass::backward_params && pass != Pass::backward_data) return {};
  std::vector<std::string> names;
  for (const Candidate& candidate : candidates_of(op, spec, pass, nullptr)) names.push_back(candidate.algorithm);
  return names;
}

Lowered lower(const Conv& op, const Spec& spec, const Choice& choice, Machine& machine) {
  const std::string unit = std::string(Machine::backend_name()) + ": " + to_string(Op(op));
  Lowered lowered = assemble(spec, [&](Pass pass) {
    if (choice.algorithm[static_cast<std::size_t>(pass)] == winograd_4x4_name)
      if (const std::string reason = winograd_4x4_refusal(op, pass); !reason.empty())
        throw Unsupported(unit + ", " + std::string(to_string(pass)) + ": " + reason);
    return pick(unit, pass, choice, candidates_of(op, spec, pass, &machine));
  });
  if (spec.mode == Mode::inference && lowered.steps[0].algorithm == winograd_4x4_name) {
    lowered.prepared_bytes = winograd_4x4_prepared_bytes(op, spec);
    lowered.steps.push_back(winograd_4x4_step(op, spec, Pass::prepare, machine));
  }
  return lowered;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
