// The chooser: picks an algorithm for a pass, as a Choice demands.

#include "algorithms.h"

#include <sstream>

#include "lamina/error.h"

namespace lamina {
namespace {

/// The reason why the limits of a choice exclude an alternative. Empty: they do not.
std::string excess(const Alternative& alternative, const Lowered::Step& step, const Choice& choice) {
  std::ostringstream text;
  if (alternative.max_error > choice.max_error) {
    text << alternative.algorithm << " guarantees ";
    if (alternative.max_error == no_bound)
      text << "no bound on its error";
    else
      text << "a relative error of " << alternative.max_error << ", not " << choice.max_error;
  } else if (choice.deterministic && !step.deterministic) {
    text << alternative.algorithm << " may give other bits on another run";
  } else if (step.kernel->workspace_bytes() > choice.workspace_limit) {
    text << alternative.algorithm << " needs " << step.kernel->workspace_bytes() << " bytes of workspace, the limit is "
         << choice.workspace_limit;
  }
  return text.str();
}

bool is_by_rule(const Alternative& alternative) { return alternative.place != by_name_only; }

/// The reason why the rule takes `taken`. `excluded`: reasons why limits exclude earlier alternatives, or empty.
std::string reason_of(const Alternative& taken, const std::vector<Alternative>& all, const std::string& excluded) {
  if (!excluded.empty()) return "rule: the first within the limits; " + excluded;
  if (!taken.reason.empty()) return "rule: " + taken.reason;
  std::string others;
  for (const Alternative& other : all)
    if (&other != &taken && is_by_rule(other)) others += (others.empty() ? "" : ", ") + other.algorithm;
  return others.empty() ? "" : "rule: before " + others;
}

}  // namespace

bool takes_plain(const Spec& spec, Pass) { return !has_halves(spec) && spec.y.layout == Layout::nchw; }

Lowered::Step pick(const std::string& unit, Pass pass, const Choice& choice, const std::vector<Alternative>& all) {
  const std::string where = unit + ", " + std::string(to_string(pass)) + ": ";
  const std::string& named = choice.algorithm[static_cast<std::size_t>(pass)];
  std::string reasons;  // why alternatives are passed over
  for (const Alternative& each : all) {
    if (named.empty() ? !is_by_rule(each) : each.algorithm != named) continue;
    std::string reason = each.refusal;
    if (reason.empty()) {
      Lowered::Step step = each.make_step();
      reason = step.kernel == nullptr ? step.reason : excess(each, step, choice);
      if (reason.empty()) {
        step.max_error = each.max_error;
        step.reason = named.empty() ? reason_of(each, all, reasons) : "named";
        return step;
      }
    }
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  if (!reasons.empty()) throw Unsupported(where + reasons);
  if (named.empty()) throw Unsupported(where + "the rule offers no algorithm");
  std::string known;
  for (const Alternative& each : all)
    if (each.refusal.empty()) known += (known.empty() ? "" : ", ") + each.algorithm;
  throw UsageError(where + "unknown algorithm '" + named + "'; there are " + known);
}

}  // namespace lamina
