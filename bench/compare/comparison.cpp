// Two files of results, row by row.

#include "comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "lamina/error.h"
#include "tune/two_runs.h"

namespace lamina::bench {
namespace {

constexpr double most_by_others = 0.15;    // of all processors: beyond, the load decides and not the program
constexpr double drift_level = 0.999;      // of the interval that shows a drift within one run
constexpr double sure_factor = 50;         // a gate fails wrongly in one of so many of what is called slower wrongly
constexpr std::size_t fewest_of_half = 7;  // samples, for an interval of that level

bool is_first_call(const RunRow& row) { return row.field("what") == "setup"; }

/// Widens an interval as if there were so many times fewer samples.
Interval widened(const Interval& ratio, double times) {
  const double factor = std::sqrt(times);
  return {ratio.middle * std::pow(ratio.low / ratio.middle, factor), ratio.middle,
          ratio.middle * std::pow(ratio.high / ratio.middle, factor)};
}

/// How much the second half of a run differs from the first, or 1 where that may be noise.
double drift_of(const std::vector<double>& seconds) {
  const std::size_t half = seconds.size() / 2;
  if (half < fewest_of_half) return 1;
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(half);
  const Interval ratio = unpaired_ratio_interval({seconds.begin(), middle}, {middle, seconds.end()}, drift_level);
  return ratio.low > 1 || ratio.high < 1 ? ratio.middle : 1;
}

std::string drift_text(const RunRow& first, const RunRow& second, double share) {
  for (const auto& [which, row] : {std::pair("first", &first), std::pair("second", &second)}) {
    const double drift = drift_of(row->seconds);
    if (std::max(drift, 1 / drift) > 1 + share)
      return fmt::format("the {} run drifts: its second half takes {:.3f} times its first", which, drift);
  }
  return {};
}

Verdict judge(const Interval& ratio, double smallest) {
  const double half = smallest / 2;
  if (ratio.low > 1 && ratio.middle > 1 + half) return Verdict::slower;
  if (ratio.high < 1 && ratio.middle < 1 / (1 + half)) return Verdict::faster;
  if (ratio.low > 1 / (1 + smallest) && ratio.high < 1 + smallest) return Verdict::equal;
  return Verdict::undecided;
}

/// Of a row that has samples in both files.
void compare_samples(ComparedRow& row, const RunRow& first, const RunRow& second, const CompareRules& rules,
                     double level) {
  row.first_seconds = median_interval(first.seconds).middle;
  row.seconds = median_interval(second.seconds).middle;
  row.first_samples = first.seconds.size();
  row.samples = second.seconds.size();
  const double repetition = std::max(repetition_of(first.seconds), repetition_of(second.seconds));
  row.ratio = widened(unpaired_ratio_interval(first.seconds, second.seconds, level), repetition);
  if (is_first_call(first)) {
    row.reason = "a first call is one sample of a process; bench/race/versions compares them";
    return;
  }
  std::size_t fewest = 2;  // that can decide at all
  while (unpaired_rank(fewest, fewest, level) == 0) ++fewest;
  // Half of the interval is to be less than half of the change: then it is found whichever way its noise falls.
  constexpr double share_of_change = 0.45;
  // And few samples know their spread badly.
  const auto spread_of = [](const std::vector<double>& seconds) {
    return robust_spread(seconds) * (1 + 1 / std::sqrt(static_cast<double>(seconds.size())));
  };
  const double spread = std::max(spread_of(first.seconds), spread_of(second.seconds));
  const auto wanted = static_cast<double>(samples_to_resolve(share_of_change * rules.smallest, spread, level));
  row.samples_wanted = std::max(fewest, static_cast<std::size_t>(std::ceil(repetition * wanted)));
  if (unpaired_rank(row.first_samples, row.samples, level) == 0) {
    row.reason = fmt::format("{} and {} samples cannot decide", row.first_samples, row.samples);
    return;
  }
  const double others = std::max(first.others_share, second.others_share);
  if (others > most_by_others && !rules.any_load) {
    row.reason = fmt::format("other programs took {:.0f} % of the processors", 100 * others);
    return;
  }
  row.reason = drift_text(first, second, rules.smallest / 2);
  if (row.reason.empty()) row.verdict = judge(row.ratio, rules.smallest);
  const double sure = 1 - (1 - level) / sure_factor;
  row.surely_slower = unpaired_rank(row.first_samples, row.samples, sure) > 0 &&
                      widened(unpaired_ratio_interval(first.seconds, second.seconds, sure), repetition).low > 1;
}

ComparedRow compare_row(const std::string& name, const RunRow* first, const RunRow* second, const CompareRules& rules,
                        double level) {
  ComparedRow row{name, (first != nullptr ? first : second)->key};
  if (first == nullptr || second == nullptr) {
    row.verdict = Verdict::missing;
    row.reason = first == nullptr ? "not in the first" : "not in the second";
    return row;
  }
  row.grades = first->grade + (first->grade.empty() || second->grade.empty() ? "" : " ") + second->grade;
  const bool first_failed = first->seconds.empty(), second_failed = second->seconds.empty();
  if (!first_failed && !second_failed) {
    compare_samples(row, *first, *second, rules, level);
  } else if (first_failed && second_failed) {
    row.reason = "fails in both: " + second->failure;
  } else {
    if (second_failed) row.verdict = Verdict::fails;
    row.reason = second_failed ? second->failure : "no longer fails: " + first->failure;
  }
  return row;
}

/// The same network in the same setting.
bool same_setting(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b) {
  for (const char* field : {"network", "backend", "type", "layout", "batch"})
    if (a.value(field, nlohmann::ordered_json()) != b.value(field, nlohmann::ordered_json())) return false;
  return true;
}

/// Names the slower layers of a whole pass that got slower.
void name_layers(ComparedRow& whole, const std::vector<ComparedRow>& rows) {
  const std::string part = whole.key.value("part", std::string());
  std::vector<const ComparedRow*> slower;
  for (const ComparedRow& row : rows) {
    if (row.verdict != Verdict::slower || !row.key.contains("layer") || !same_setting(row.key, whole.key)) continue;
    const bool backward = row.key.value("part", std::string()).starts_with("backward");
    if (part == "total" || (part == "backward") == backward) slower.push_back(&row);
  }
  const auto added = [](const ComparedRow* row) { return row->seconds - row->first_seconds; };
  std::sort(slower.begin(), slower.end(), [&](const auto* a, const auto* b) { return added(a) > added(b); });
  std::vector<std::string> texts;
  for (const ComparedRow* row : slower)
    if (texts.size() < 3)
      texts.push_back(fmt::format("{} {} (+{:.3f} ms)", row->key["layer"].get<std::string>(),
                                  row->key["part"].get<std::string>(), 1e3 * added(row)));
  if (!texts.empty()) whole.reason = fmt::format("slower layers: {}", fmt::join(texts, ", "));
}

bool is_whole(const ComparedRow& row) {
  const std::string what = row.key.value("what", std::string());
  return (what == "net" || what == "ledger") && !row.key.contains("layer");
}

}  // namespace

const char* to_string(Verdict verdict) {
  constexpr std::array names = {"fails", "missing", "slower", "faster", "not decided", "equal"};
  return names[static_cast<std::size_t>(verdict)];
}

std::size_t Comparison::count(Verdict verdict) const {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [&](const ComparedRow& row) { return row.verdict == verdict; }));
}

std::size_t Comparison::samples_wanted() const {
  std::size_t most = 0;
  for (const ComparedRow& row : rows)
    if (row.verdict == Verdict::undecided) most = std::max(most, row.samples_wanted);
  return most;
}

std::vector<const ComparedRow*> Comparison::failed(double limit) const {
  std::vector<const ComparedRow*> found;
  for (const ComparedRow& row : rows) {
    const bool gone = row.verdict == Verdict::missing && row.reason == "not in the second";
    if (row.verdict == Verdict::fails || gone || row.is_slower_than(limit)) found.push_back(&row);
  }
  return found;
}

Comparison compare(const RunFile& first, const RunFile& second, const CompareRules& rules) {
  std::set<std::string> names;
  std::size_t shared = 0, with_intervals = 0;
  for (const auto& [name, row] : first.rows) {
    names.insert(name);
    const auto other = second.rows.find(name);
    if (other == second.rows.end()) continue;
    ++shared;
    if (!is_first_call(row) && !row.seconds.empty() && !other->second.seconds.empty()) ++with_intervals;
  }
  if (shared == 0)
    throw UsageError(fmt::format("{} and {} have no row in common: the first has {}, the second {}",
                                 first.path.string(), second.path.string(), first.rows.begin()->first,
                                 second.rows.begin()->first));
  for (const auto& [name, row] : second.rows) names.insert(name);

  Comparison all;
  all.level = 1 - (1 - interval_level) / static_cast<double>(std::max<std::size_t>(with_intervals, 1));
  const auto in = [](const RunFile& file, const std::string& name) {
    const auto found = file.rows.find(name);
    return found == file.rows.end() ? nullptr : &found->second;
  };
  for (const std::string& name : names)
    all.rows.push_back(compare_row(name, in(first, name), in(second, name), rules, all.level));
  for (ComparedRow& row : all.rows)
    if (is_whole(row) && row.verdict == Verdict::slower) name_layers(row, all.rows);
  std::stable_sort(all.rows.begin(), all.rows.end(), [](const ComparedRow& a, const ComparedRow& b) {
    if (a.verdict != b.verdict) return a.verdict < b.verdict;
    return std::abs(std::log(a.ratio.middle)) > std::abs(std::log(b.ratio.middle));
  });
  return all;
}

std::vector<std::string> other_machine(const RunFile& first, const RunFile& second) {
  std::vector<std::string> differences;
  for (const char* fact : {"processor", "num_cpus", "memory", "gpu_0", "threads", "cpu_quota"}) {
    const std::string a = first.fact(fact), b = second.fact(fact);
    if (!a.empty() && !b.empty() && a != b) differences.push_back(fmt::format("{}: {} and {}", fact, a, b));
  }
  return differences;
}

}  // namespace lamina::bench
