// Two sets of results, row by row.

#include "comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "lamina/error.h"
#include "lib/tune/unpaired.h"

namespace lamina::bench {
namespace {

constexpr double max_foreign_load = 0.15;  // share of all processors: above it the load decides, not the program
constexpr double gate_strictness = 50;     // a gate may be wrong so many times less often than the verdict `slower`

constexpr const char* not_in_second = "not in the second";

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
    if (row.others_share > max_foreign_load && !rules.any_load && !rules.cpu_time) {
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

constexpr double level_of_gate(double level) { return 1 - (1 - level) / gate_strictness; }

/// Judges a row by its ratio. It is beyond the gate if the ratio is above the limit, and `strict`, the interval of the
/// ratio at the gate's level, is above 1.
void decide(ComparedRow& row, const Interval& strict, const CompareRules& rules) {
  row.beyond_gate = rules.fail_if_slower && row.ratio.middle > 1 + *rules.fail_if_slower && strict.low > 1;
  // A gate may be for less than the smallest change that is looked for.
  row.verdict = row.beyond_gate ? Verdict::slower : judge(row.ratio, rules.smallest);
}

/// The spread of samples or of their ratios, as a share of the median. That of few is itself uncertain.
double spread_of(const std::vector<double>& values) {
  return robust_spread(values) * (1 + 1 / std::sqrt(static_cast<double>(values.size())));
}

/// Judges a row that has times on both sides.
void compare_processes(ComparedRow& row, const SideRow& first, const SideRow& second, const CompareRules& rules,
                       double level) {
  const double gate_level = level_of_gate(level);
  const std::size_t fewest = fewest_at(gate_level);
  row.first_processes = first.seconds.size();
  row.processes = second.seconds.size();
  row.fewest_processes = fewest;
  row.disturbed = first.disturbed + second.disturbed;
  const std::size_t least = std::min(row.first_processes, row.processes);
  Interval strict;
  if (least > 0) {
    row.first_seconds = median_interval(first.seconds).middle;
    row.seconds = median_interval(second.seconds).middle;
    const double correlation = std::max(autocorrelation_factor(first.seconds), autocorrelation_factor(second.seconds));
    row.ratio = inflate(unpaired_ratio_interval(first.seconds, second.seconds, level), correlation);
    row.scatter = std::sqrt(correlation) * std::max(spread_of(first.seconds), spread_of(second.seconds));
    strict = inflate(unpaired_ratio_interval(first.seconds, second.seconds, gate_level), correlation);
  }
  if (least < fewest) {
    row.reason = fmt::format("{} and {} processes; {} more needed", row.first_processes, row.processes, fewest - least);
    if (row.disturbed > 0)
      row.reason += fmt::format(" ({} disturbed: other programs took up to {:.0f} % of the processors)", row.disturbed,
                                100 * std::max(first.others_share, second.others_share));
    return;
  }
  decide(row, strict, rules);
}

/// The row without its times: judged, if it is missing or fails. Null for a side without the row.
ComparedRow begin_row(const std::string& name, const RunRow* first, const RunRow* second, bool first_fails,
                      bool second_fails) {
  ComparedRow row{name, (first != nullptr ? first : second)->key};
  if (first == nullptr || second == nullptr) {
    row.verdict = Verdict::missing;
    row.reason = first == nullptr ? "not in the first" : not_in_second;
    return row;
  }
  row.first_MiB = first->plan_MiB;
  row.MiB = second->plan_MiB;
  row.first_algorithm = first->algorithm;
  row.algorithm = second->algorithm;
  row.failure_kind = second->failure_kind;
  row.rerun = second->rerun;
  if (second_fails) {
    row.verdict = first_fails ? Verdict::inconclusive : Verdict::fails;
    row.reason = (first_fails ? "fails in both: " : "") + second->failure;
  } else if (first_fails) {
    row.reason = "fails in the first alone: " + first->failure;
  }
  return row;
}

ComparedRow compare_row(const std::string& name, const SideRow& first, const SideRow& second, const CompareRules& rules,
                        double level) {
  ComparedRow row = begin_row(name, first.any, second.any, first.fails(), second.fails());
  if (row.verdict == Verdict::missing) return row;
  row.grades = first.grade + (first.grade.empty() || second.grade.empty() ? "" : " ") + second.grade;
  if (!first.fails() && !second.fails()) compare_processes(row, first, second, rules, level);
  return row;
}

void sort_rows(std::vector<ComparedRow>& rows) {
  std::stable_sort(rows.begin(), rows.end(), [](const ComparedRow& a, const ComparedRow& b) {
    if (a.verdict != b.verdict) return a.verdict < b.verdict;
    return std::abs(std::log(a.ratio.middle)) > std::abs(std::log(b.ratio.middle));
  });
}

/// The seconds of each round.
std::map<std::int64_t, double> by_round(const RunRow& row, const std::string& name, bool cpu_time) {
  if (cpu_time && row.cpu_seconds.size() != row.seconds.size())
    throw UsageError(fmt::format("{} has no processor times; compare it without --cpu_time", name));
  std::map<std::int64_t, double> found;
  for (std::size_t i = 0; i < row.rounds.size(); ++i)
    found[row.rounds[i]] = (cpu_time ? row.cpu_seconds : row.seconds)[i];
  return found;
}

/// Judges a row that has times of both variants.
void compare_rounds(ComparedRow& row, const RunRow& first, const RunRow& second, const CompareRules& rules) {
  const auto before = by_round(first, row.name, rules.cpu_time), after = by_round(second, row.name, rules.cpu_time);
  std::vector<double> a, b, ratios;
  for (const auto& [round, seconds] : before)
    if (const auto found = after.find(round); found != after.end()) {
      a.push_back(seconds);
      b.push_back(found->second);
      ratios.push_back(b.back() / a.back());
      row.round_ratios.emplace_back(round, ratios.back());
    }
  row.first_processes = row.processes = a.size();
  row.fewest_processes = fewest_samples;
  row.disturbed = first.disturbed + second.disturbed;
  if (!a.empty()) {
    row.first_seconds = median_interval(a).middle;
    row.seconds = median_interval(b).middle;
    row.ratio = ratio_interval(a, b);
    row.scatter = spread_of(ratios);
  }
  if (a.size() < fewest_samples) {
    row.reason = fmt::format("{} rounds have both; {} more needed", a.size(), fewest_samples - a.size());
    return;
  }
  // Fewer than eleven rounds have no interval at the gate's level. The row's own is widened as that of a normal number.
  const double wider = normal_quantile(level_of_gate(interval_level)) / normal_quantile(interval_level);
  decide(row, inflate(row.ratio, wider * wider), rules);
  if (row.verdict == Verdict::inconclusive)
    row.reason = "the rounds differ too much: more of them, or a quieter machine";
}

const RunRow* find_row(const Variant& variant, const std::string& name) {
  const auto found = variant.rows.find(name);
  return found == variant.rows.end() ? nullptr : &found->second;
}

ComparedRow compare_variants(const std::string& name, const Variant& first, const Variant& second,
                             const CompareRules& rules) {
  const RunRow *a = find_row(first, name), *b = find_row(second, name);
  const auto fails = [](const RunRow* row) {
    return row != nullptr && (!row->failure.empty() || row->seconds.empty());
  };
  ComparedRow row = begin_row(name, a, b, fails(a), fails(b));
  row.first = first.name;
  row.second = second.name;
  if (a != nullptr && b != nullptr && !fails(a) && !fails(b)) compare_rounds(row, *a, *b, rules);
  return row;
}

/// The geometric means of the ratios of whole passes by networks, of the rows of one pair of variants.
void add_means(std::vector<MeanRatio>& means, const std::vector<ComparedRow>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<const ComparedRow*>> groups;
  for (const ComparedRow& row : rows)
    if (row.seconds > 0 && (row.is_whole() || row.key.value("what", std::string()) == "train"))
      groups[{row.key.value("part", std::string()), row.key.value("type", std::string())}].push_back(&row);
  for (const auto& [of, group] : groups) {
    std::set<std::string> networks;
    std::map<std::int64_t, std::pair<double, std::size_t>> rounds;  // sums of logarithms, and how many
    double sum = 0;
    for (const ComparedRow* row : group) {
      networks.insert(row->key.value("network", std::string()));
      sum += std::log(row->ratio.middle);
      for (const auto& [round, ratio] : row->round_ratios) {
        rounds[round].first += std::log(ratio);
        ++rounds[round].second;
      }
    }
    if (networks.size() < 2 || networks.size() != group.size()) continue;  // rows that differ in more than the network
    const auto count = static_cast<double>(group.size());
    const double middle = std::exp(sum / count);
    std::vector<double> of_rounds = {};
    for (const auto& [round, logs] : rounds)
      if (logs.second == group.size()) of_rounds.push_back(std::exp(logs.first / count));
    MeanRatio mean{of.first, of.second, rows.front().first, rows.front().second, networks.size(), middle};
    if (of_rounds.size() >= fewest_samples) {
      const Interval ratio = median_interval(of_rounds);
      mean.interval = {std::min(ratio.low, middle), middle, std::max(ratio.high, middle)};
    }
    means.push_back(std::move(mean));
  }
}

constexpr const char* fastest_name = "fastest";

/// The variant among `others` with the lowest median of a row. Null if none has times of it.
const Variant* fastest_of(const std::vector<const Variant*>& others, const std::string& name, bool cpu_time) {
  const Variant* best = nullptr;
  double least = 0;
  for (const Variant* one : others) {
    const RunRow* row = find_row(*one, name);
    if (row == nullptr || row->seconds.empty() || !row->failure.empty()) continue;
    const double seconds = median_interval(cpu_time ? row->cpu_seconds : row->seconds).middle;
    if (best == nullptr || seconds < least) best = one, least = seconds;
  }
  return best;
}

}  // namespace

const char* to_string(Verdict verdict) {
  constexpr std::array names = {"fails", "missing", "slower", "faster", "inconclusive", "equal"};
  return names[static_cast<std::size_t>(verdict)];
}

Verdict judge(const Interval& ratio, double smallest) {
  const double half = smallest / 2;
  if (ratio.low > 1 && ratio.middle > 1 + half) return Verdict::slower;
  if (ratio.high < 1 && ratio.middle < 1 / (1 + half)) return Verdict::faster;
  if (ratio.low > 1 / (1 + smallest) && ratio.high < 1 + smallest) return Verdict::equal;
  return Verdict::inconclusive;
}

std::size_t Comparison::count(Verdict verdict) const {
  return static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [&](const ComparedRow& row) { return row.verdict == verdict; }));
}

std::size_t Comparison::processes_wanted(const ComparedRow& row, double change) const {
  // Half of the interval is to be less than half of the change: then the change is found, and equal rows are called so,
  // whichever way the noise of the middle falls.
  constexpr double share_of_change = 0.45;
  const double share = share_of_change * change;
  return std::max(row.fewest_processes,
                  paired ? pairs_to_resolve(share, row.scatter, level) : samples_to_resolve(share, row.scatter, level));
}

std::size_t Comparison::processes_wanted(double change) const {
  std::size_t most = 0;
  for (const ComparedRow& row : rows)
    if (row.verdict == Verdict::inconclusive && row.fewest_processes > 0)
      most = std::max(most, processes_wanted(row, change));
  return most;
}

std::vector<const ComparedRow*> Comparison::failed() const {
  std::vector<const ComparedRow*> found;
  for (const ComparedRow& row : rows) {
    const bool gone = row.verdict == Verdict::missing && row.reason == not_in_second;
    if (row.verdict == Verdict::fails || gone || row.beyond_gate) found.push_back(&row);
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
  explain(all.rows);
  sort_rows(all.rows);
  return all;
}

Comparison compare_paired(const std::vector<Variant>& variants, const std::vector<std::string>& subjects,
                          const CompareRules& rules) {
  std::vector<const Variant*> of_subjects, others;
  for (const std::string& subject : subjects) {
    const auto found = std::ranges::find(variants, subject, &Variant::name);
    if (found == variants.end()) {
      std::vector<std::string> names;
      for (const Variant& variant : variants) names.push_back(variant.name);
      throw UsageError(
          fmt::format("--subject: {} is no variant of the file; valid names: {}", subject, fmt::join(names, ", ")));
    }
    of_subjects.push_back(&*found);
  }
  for (const Variant& variant : variants)
    if (std::ranges::find(of_subjects, &variant) == of_subjects.end()) others.push_back(&variant);
  const bool versions = subjects.empty();
  std::vector<std::pair<const Variant*, const Variant*>> pairs;  // without a first: the fastest of the others
  if (versions)
    for (const Variant& variant : variants)
      if (&variant != &variants.front()) pairs.emplace_back(&variants.front(), &variant);
  for (const Variant* subject : of_subjects) {
    for (const Variant* other : others) pairs.emplace_back(other, subject);
    if (others.size() > 1) pairs.emplace_back(nullptr, subject);
  }
  Comparison all;
  all.paired = true;
  for (const auto& [first, second] : pairs) {
    std::set<std::string> names;
    for (const Variant* side : {first, second})
      if (side != nullptr)
        for (const auto& [name, row] : side->rows) names.insert(name);
    std::vector<ComparedRow> rows;
    for (const std::string& name : names) {
      const Variant* const before = first != nullptr ? first : fastest_of(others, name, rules.cpu_time);
      // Not every competitor of a race has every row.
      if (before == nullptr || (!versions && (!before->rows.contains(name) || !second->rows.contains(name)))) continue;
      ComparedRow row = compare_variants(name, *before, *second, rules);
      if (first == nullptr) row.fastest = std::exchange(row.first, fastest_name);
      rows.push_back(std::move(row));
    }
    if (versions) explain(rows);
    add_means(all.means, rows);
    sort_rows(rows);
    std::ranges::move(rows, std::back_inserter(all.rows));
  }
  if (std::ranges::all_of(all.rows, [](const auto& row) { return row.verdict == Verdict::missing; }))
    throw UsageError("no row has the same name in two of the variants");
  return all;
}

}  // namespace lamina::bench
