// The chooser: picks an algorithm for a pass, as a Choice demands.

#include "algorithms.h"

#include <algorithm>
#include <sstream>

#include "lamina/error.h"

namespace lamina {
namespace {

/// Why the limits of a choice exclude an alternative, or empty.
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

/// The reason why the rule takes an alternative among several. `excluded`: why limits exclude the earlier alternatives.
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

Demands::Demands(const std::string& unit, Pass pass, const Choice& choice, const std::vector<Alternative>& all)
    : where_(unit + ", " + std::string(to_string(pass)) + ": "),
      named_(choice.algorithm[static_cast<std::size_t>(pass)]),
      choice_(choice),
      all_(all) {}

void Demands::note(const std::string& reason) { reasons_ += (reasons_.empty() ? "" : "; ") + reason; }

bool Demands::considers(const Alternative& alternative) {
  if (named_.empty() ? !is_by_rule(alternative) : alternative.algorithm != named_) return false;
  if (!alternative.refusal.empty()) note(alternative.refusal);
  return alternative.refusal.empty();
}

bool Demands::takes(const Alternative& alternative, Lowered::Step& step) {
  const std::string reason = step.kernel == nullptr ? step.reason : excess(alternative, step, choice_);
  if (!reason.empty()) {
    note(reason);
    return false;
  }
  step.max_error = alternative.max_error;
  step.reason = named_.empty() ? reason_of(alternative, all_, reasons_) : "named";
  return true;
}

void Demands::refuse() const {
  if (!reasons_.empty()) throw Unsupported(where_ + reasons_);
  if (named_.empty()) throw Unsupported(where_ + "the rule offers no algorithm");
  std::string known;
  for (const Alternative& each : all_)
    if (each.refusal.empty()) known += (known.empty() ? "" : ", ") + each.algorithm;
  throw UsageError(where_ + "unknown algorithm '" + named_ + "'; there are " + known);
}

}  // namespace lamina
