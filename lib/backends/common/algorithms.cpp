// The reasons why an algorithm is taken or refused.

#include "algorithms.h"

#include <sstream>

namespace lamina {

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

std::string reason_of(const Alternative& taken, const std::vector<Alternative>& all, const std::string& excluded) {
  if (!excluded.empty()) return "rule: the first within the limits; " + excluded;
  if (!taken.reason.empty()) return "rule: " + taken.reason;
  std::string others;
  for (const Alternative& other : all)
    if (&other != &taken && is_by_rule(other)) others += (others.empty() ? "" : ", ") + other.algorithm;
  return others.empty() ? "" : "rule: before " + others;
}

void refuse_name(const std::string& where, const std::string& name, const std::vector<Alternative>& all) {
  std::string known;
  for (const Alternative& each : all)
    if (each.refusal.empty()) known += (known.empty() ? "" : ", ") + each.algorithm;
  throw UsageError(where + "unknown algorithm '" + name + "'; there are " + known);
}

}  // namespace lamina
