// Two sets of results, row by row.

#include "comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "lamina/error.h"
#include "lib/tune/two_runs.h"

namespace lamina::bench {
namespace {

constexpr double most_by_others = 0.15;  // of all processors: above it the load decides, not the program
constexpr double sure_factor = 50;       // a gate may be wrong so many times less often than the verdict `slower`

/// The row of one side, by process.
struct SideRow {
  std::vector<double> seconds;  ///< of each process whose times count: its median
  std::size_t disturbed = 0;    ///< processes that others disturbed: they do not count
  double others_share = 0;      ///< the greatest
  std::string grade, failure;   ///< the worst; the first
  const RunRow* any = nullptr;  ///< null: no process has the row

  /// A failure is no noise: one process that fails is enough.
  bool fails() const { return !failure.empty() || (seconds.empty() && disturbed == 0); }
};

SideRow side_row(const Processes& processes, const std::string& name, const CompareRules& rules) {
  SideRow side;
  for (const RunFile& file : processes) {
    const auto found = file.rows.find(name);
    if (found == file.rows.end()) continue;
    const RunRow& row = found->second;
    if (side.any == nullptr) side.any = &row;
    side.grade = std::max(side.grade, row.grade);
    side.others_share = std::max(side.others_share, row.others_share);
    if (side.failure.empty()) side.failure = row.failure;
    if (row.seconds.empty()) continue;
    if (rules.cpu_time && row.cpu_seconds.size() != row.seconds.size())
      throw UsageError(
          fmt::format("{} has no processor times of {}; compare it without --cpu_time", file.path.string(), name));
    if (row.others_share > most_by_others && !rules.any_load && !rules.cpu_time) {
      ++side.disturbed;
      continue;
    }
    side.seconds.push_back(median_interval(rules.cpu_time ? row.cpu_seconds : row.seconds).middle);
  }
  return side;
}

/// The fewest processes of each side that give an interval of this level.
std::size_t fewest_at(double level) {
  std::size_t fewest = 2;
  while (unpaired_rank(fewest, fewest, level) == 0) ++fewest;
  return fewest;
}

Verdict judge(const Interval& ratio, double smallest) {
  const double half = smallest / 2;
  if (ratio.low > 1 && ratio.middle > 1 + half) return Verdict::slower;
  if (ratio.high < 1 && ratio.middle < 1 / (1 + half)) return Verdict::faster;
  if (ratio.low > 1 / (1 + smallest) && ratio.high < 1 + smallest) return Verdict::equal;
  return Verdict::undecided;
}

/// Of a row that has times on both sides.
void compare_processes(ComparedRow& row, const SideRow& first, const SideRow& second, const CompareRules& rules,
                       double level) {
  const double sure = 1 - (1 - level) / sure_factor;
  const std::size_t fewest = fewest_at(sure);
  row.first_processes = first.seconds.size();
  row.processes = second.seconds.size();
  row.fewest_processes = fewest;
  row.disturbed = first.disturbed + second.disturbed;
  const std::size_t least = std::min(row.first_processes, row.processes);
  if (least > 0) {
    row.first_seconds = median_interval(first.seconds).middle;
    row.seconds = median_interval(second.seconds).middle;
    const double repetition = std::max(repetition_of(first.seconds), repetition_of(second.seconds));
    row.ratio = widened(unpaired_ratio_interval(first.seconds, second.seconds, level), repetition);
    // The spread of few processes is itself uncertain.
    const auto spread_of = [](const std::vector<double>& seconds) {
      return robust_spread(seconds) * (1 + 1 / std::sqrt(static_cast<double>(seconds.size())));
    };
    row.scatter = std::sqrt(repetition) * std::max(spread_of(first.seconds), spread_of(second.seconds));
    row.surely_slower = unpaired_rank(row.first_processes, row.processes, sure) > 0 &&
                        widened(unpaired_ratio_interval(first.seconds, second.seconds, sure), repetition).low > 1;
  }
  if (least < fewest) {
    row.reason = fmt::format("{} and {} processes; {} more needed", row.first_processes, row.processes, fewest - least);
    if (row.disturbed > 0)
      row.reason += fmt::format(" ({} disturbed: other programs took up to {:.0f} % of the processors)", row.disturbed,
                                100 * std::max(first.others_share, second.others_share));
    return;
  }
  row.verdict = judge(row.ratio, rules.smallest);
  // A gate may be for less than the smallest change that is looked for.
  if (rules.fail_if_slower && row.surely_slower && row.ratio.middle > 1 + *rules.fail_if_slower)
    row.verdict = Verdict::slower;
}

ComparedRow compare_row(const std::string& name, const SideRow& first, const SideRow& second, const CompareRules& rules,
                        double level) {
  ComparedRow row{name, (first.any != nullptr ? first : second).any->key};
  if (first.any == nullptr || second.any == nullptr) {
    row.verdict = Verdict::missing;
    row.reason = first.any == nullptr ? "not in the first" : "not in the second";
    return row;
  }
  row.grades = first.grade + (first.grade.empty() || second.grade.empty() ? "" : " ") + second.grade;
  const bool first_failed = first.fails(), second_failed = second.fails();
  if (!first_failed && !second_failed) {
    compare_processes(row, first, second, rules, level);
  } else if (first_failed && second_failed) {
    row.reason = "fails in both: " + second.failure;
  } else {
    if (second_failed) row.verdict = Verdict::fails;
    row.reason = second_failed ? second.failure : "no longer fails: " + first.failure;
  }
  return row;
}

/// The same network in the same setting.
bool same_setting(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b) {
  for (const char* field : {"network", "backend", "type", "layout", "batch"})
    if (a.value(field, nlohmann::ordered_json()) != b.value(field, nlohmann::ordered_json())) return false;
  return true;
}

/// A layer's row by a named algorithm, which also has the row of what the pass runs.
bool is_beside_default(const ComparedRow& row, const std::vector<ComparedRow>& rows) {
  const std::string algorithm = row.key.value("algorithm", std::string());
  if (algorithm.empty() || algorithm == "default") return false;
  return std::any_of(rows.begin(), rows.end(), [&](const ComparedRow& other) {
    return other.key.value("algorithm", std::string()) == "default" && same_setting(other.key, row.key) &&
           other.key.value("layer", std::string()) == row.key.value("layer", std::string()) &&
           other.key.value("part", std::string()) == row.key.value("part", std::string());
  });
}

/// Names the slower layers of a whole pass that got slower.
void name_layers(ComparedRow& whole, const std::vector<ComparedRow>& rows) {
  const std::string part = whole.key.value("part", std::string());
  std::vector<const ComparedRow*> slower;
  for (const ComparedRow& row : rows) {
    if (row.verdict != Verdict::slower || !row.key.contains("layer") || !same_setting(row.key, whole.key)) continue;
    if (is_beside_default(row, rows)) continue;
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

std::size_t Comparison::processes_wanted(const ComparedRow& row, double change) const {
  // Half of the interval is to be less than half of the change: then the change is found, and equal rows are called so,
  // whichever way the noise of the middle falls.
  constexpr double share_of_change = 0.45;
  return std::max(row.fewest_processes, samples_to_resolve(share_of_change * change, row.scatter, level));
}

std::size_t Comparison::processes_wanted(double change) const {
  std::size_t most = 0;
  for (const ComparedRow& row : rows)
    if (row.verdict == Verdict::undecided && row.fewest_processes > 0)
      most = std::max(most, processes_wanted(row, change));
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

Comparison compare(const Processes& first, const Processes& second, const CompareRules& rules) {
  std::set<std::string> names;
  for (const Processes* side : {&first, &second})
    for (const RunFile& file : *side)
      for (const auto& [name, row] : file.rows) names.insert(name);
  std::size_t shared = 0, with_intervals = 0;
  std::vector<std::pair<SideRow, SideRow>> sides;
  for (const std::string& name : names) {
    const auto& [a, b] = sides.emplace_back(side_row(first, name, rules), side_row(second, name, rules));
    if (a.any == nullptr || b.any == nullptr) continue;
    ++shared;
    if (!a.fails() && !b.fails()) ++with_intervals;
  }
  if (shared == 0)
    throw UsageError(fmt::format("{} and {} have no row in common: the first has {}, the second {}",
                                 first.front().path.string(), second.front().path.string(),
                                 first.front().rows.begin()->first, second.front().rows.begin()->first));
  Comparison all;
  all.level = 1 - (1 - interval_level) / static_cast<double>(std::max<std::size_t>(with_intervals, 1));
  for (auto side = sides.begin(); const std::string& name : names) {
    all.rows.push_back(compare_row(name, side->first, side->second, rules, all.level));
    ++side;
  }
  for (ComparedRow& row : all.rows)
    if (is_whole(row) && row.verdict == Verdict::slower) name_layers(row, all.rows);
  std::stable_sort(all.rows.begin(), all.rows.end(), [](const ComparedRow& a, const ComparedRow& b) {
    if (a.verdict != b.verdict) return a.verdict < b.verdict;
    return std::abs(std::log(a.ratio.middle)) > std::abs(std::log(b.ratio.middle));
  });
  return all;
}

}  // namespace lamina::bench
