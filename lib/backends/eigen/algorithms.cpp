// Taking one algorithm among several for a pass, as a Choice demands.

#include "algorithms.h"

#include <cmath>
#include <sstream>

namespace lamina::eigen {
namespace {

/// Why a candidate does not do, or nothing.
std::string refusal(const Candidate& candidate, const Lowered::Step& step, const Choice& choice) {
  std::ostringstream text;
  if (candidate.max_error > choice.max_error) {
    text << candidate.algorithm << " guarantees a relative error of " << candidate.max_error << ", not "
         << choice.max_error;
  } else if (step.kernel->workspace_bytes() > choice.workspace_limit) {
    text << candidate.algorithm << " needs " << step.kernel->workspace_bytes() << " bytes of workspace, the limit is "
         << choice.workspace_limit;
  }
  return text.str();
}

}  // namespace

Lowered::Step pick(const std::string& unit, Pass pass, const Choice& choice, const std::vector<Candidate>& candidates) {
  const std::string& named = choice.algorithm[static_cast<std::size_t>(pass)];
  std::string known, reasons;
  for (const Candidate& candidate : candidates) {
    known += (known.empty() ? "" : ", ") + candidate.algorithm;
    if (!named.empty() && candidate.algorithm != named) continue;
    Lowered::Step step = candidate.lower();
    const std::string reason = refusal(candidate, step, choice);
    if (reason.empty()) return step;
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  const std::string where = unit + ", " + std::string(to_string(pass)) + ": ";
  if (reasons.empty()) throw UsageError(where + "unknown algorithm '" + named + "'; there are " + known);
  throw Unsupported(where + reasons);
}

Lowered assemble(const Spec& spec, const std::function<Lowered::Step(Pass)>& lower_pass) {
  Lowered lowered;
  const bool training = spec.mode == Mode::training;
  const bool wants_dx = training && !spec.wants_dx.empty() && spec.wants_dx[0];
  lowered.steps.push_back(lower_pass(Pass::forward));
  if (training) lowered.steps.push_back(lower_pass(Pass::backward_params));
  if (wants_dx) lowered.steps.push_back(lower_pass(Pass::backward_data));
  lowered.backward_reads_x = {training};
  lowered.backward_reads_y = training && ends_in_relu(spec);
  lowered.y_may_alias_x = {false};
  lowered.dx_is_dy = {false};
  lowered.dx_may_alias_dy = {false};
  lowered.recompute_reads_x = {false};
  return lowered;
}

double unit_roundoff(DType dtype) { return dtype == DType::f64 ? std::ldexp(1.0, -53) : std::ldexp(1.0, -24); }

}  // namespace lamina::eigen
