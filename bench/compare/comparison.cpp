// Two sets of results, row by row.

#include "comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <ranges>
#include <set>
#include <utility>

#include "bench/compare/unpaired.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

constexpr double gate_strictness = 50;  // factor by which a wrong failure of the gate is rarer than a wrong `slower`
constexpr double more_memory = 1.01;    // ratio of memory above which the row reports the memory

constexpr const char* not_in_second = "not in the second";

/// The row of one side. A sample is the time of a variant in one round, or the median time of a process.
struct SideRow {
  std::map<std::int64_t, double> samples{};  ///< samples that count, by number
  std::vector<double> disturbed{};           ///< samples that do not count: other programs disturbed their processes
  double least = std::numeric_limits<double>::infinity();  ///< least sample minus the share that other programs took
  double greatest = 0;                                     ///< greatest of all samples
  double others_share = 0;                                 ///< greatest share that other programs took
  std::string grade{};                                     ///< worst grade
  const RunRow* any = nullptr;                             ///< failed row if there is one, else any row; null: no row

  /// Whether the side has times. It has none if a single process failed: a failure is no noise.
  bool has_times() const { return any != nullptr && any->failure.empty() && samples.size() + disturbed.size() > 0; }

  std::vector<double> seconds() const {
    const auto all = samples | std::views::values;
    return {all.begin(), all.end()};
  }

  void add(std::int64_t number, double seconds, double others, bool counts) {
    least = std::min(least, (1 - others) * seconds);
    greatest = std::max(greatest, seconds);
    (counts ? samples[number] : disturbed.emplace_back()) = seconds;
  }
};

const std::vector<double>& times_of(const RunRow& row, const std::string& where, bool cpu_time) {
  if (cpu_time && row.cpu_seconds.size() != row.seconds.size())
    throw UsageError(fmt::format("{} has no processor times; compare it without --cpu_time", where));
  return cpu_time ? row.cpu_seconds : row.seconds;
}

void add_process(SideRow& side, const RunRow& row, const std::string& where, const CompareRules& rules) {
  if (side.any == nullptr || (side.any->failure.empty() && !row.failure.empty())) side.any = &row;
  side.grade = std::max(side.grade, row.grade);
  side.others_share = std::max(side.others_share, row.others_share);
  if (row.seconds.empty()) return;
  const double others = rules.cpu_time ? 0 : row.others_share;
  side.add(static_cast<std::int64_t>(side.samples.size()), median_interval(times_of(row, where, rules.cpu_time)).middle,
           others, others <= max_foreign_load || rules.any_load);
}

SideRow side_of(const Variant& variant, const std::string& name, bool cpu_time) {
  SideRow side;
  const auto found = variant.rows.find(name);
  if (found == variant.rows.end()) return side;
  const RunRow& row = found->second;
  side.any = &row;
  const std::vector<double>& seconds = times_of(row, name, cpu_time);
  for (std::size_t i = 0; i < row.rounds.size(); ++i) side.add(row.rounds[i], seconds[i], 0, true);
  return side;
}

/// The smallest number of processes of each side that gives an interval of this level.
std::size_t fewest_at(double level) {
  std::size_t fewest = 2;
  while (unpaired_rank(fewest, fewest, level) == 0) ++fewest;
  return fewest;
}

constexpr double level_of_gate(double level) { return 1 - (1 - level) / gate_strictness; }

/// Judges a row by its ratio and by `strict`, the interval of the ratio at the gate's level. If even the closest
/// samples of the two sides are far apart, the ratio alone decides.
void decide(ComparedRow& row, const SideRow& first, const SideRow& second, const Interval& strict,
            const CompareRules& rules) {
  const bool enough = row.missing_processes() == 0;
  const double closest = std::max(second.least / first.greatest, first.least / second.greatest);
  const bool apart = closest > far_apart;
  if (apart && !enough) row.reason = fmt::format("the closest differ {:.1f} times", closest);
  // --fail-if-slower may be below --smallest, so a row beyond the gate may need a verdict that judge() would not give.
  row.beyond_gate =
      rules.fail_if_slower && row.ratio.middle > 1 + *rules.fail_if_slower && (apart || (enough && strict.low > 1));
  if (apart || row.beyond_gate)
    row.verdict = row.ratio.middle > 1 ? Verdict::slower : Verdict::faster;
  else if (enough)
    row.verdict = judge(row.ratio, rules.smallest);
}

/// The spread of samples or of ratios, as a share of the median. The spread of few samples is uncertain, and is
/// therefore increased.
double spread_of(const std::vector<double>& values) {
  return robust_spread(values) * (1 + 1 / std::sqrt(static_cast<double>(values.size())));
}

/// Judges a row that has times on both sides.
void compare_processes(ComparedRow& row, const SideRow& first, const SideRow& second, const CompareRules& rules,
                       double level) {
  std::vector<double> a = first.seconds(), b = second.seconds();
  row.first_processes = a.size();
  row.processes = b.size();
  row.fewest_processes = fewest_at(level_of_gate(level));
  if (a.empty()) a = first.disturbed;
  if (b.empty()) b = second.disturbed;
  row.first_seconds = median_interval(a).middle;
  row.seconds = median_interval(b).middle;
  const double correlation = std::max(autocorrelation_factor(a), autocorrelation_factor(b));
  row.ratio = inflate(unpaired_ratio_interval(a, b, level), correlation);
  row.scatter = std::sqrt(correlation) * std::max(spread_of(a), spread_of(b));
  decide(row, first, second, inflate(unpaired_ratio_interval(a, b, level_of_gate(level)), correlation), rules);
  if (!row.is_undecided()) return;
  row.reason = fmt::format("{} and {} processes; {} more needed for an interval", row.first_processes, row.processes,
                           row.missing_processes());
  if (row.disturbed > 0)
    row.reason += fmt::format(" ({} disturbed: other programs took up to {:.0f} % of the processors)", row.disturbed,
                              100 * std::max(first.others_share, second.others_share));
}

/// Judges a row that has times of both variants.
void compare_rounds(ComparedRow& row, const SideRow& first, const SideRow& second, const CompareRules& rules) {
  std::vector<double> a, b, ratios;
  for (const auto& [round, seconds] : first.samples)
    if (const auto found = second.samples.find(round); found != second.samples.end()) {
      a.push_back(seconds);
      b.push_back(found->second);
      ratios.push_back(b.back() / a.back());
      row.round_ratios.emplace_back(round, ratios.back());
    }
  const auto disturbed = [](const SideRow& side) { return side.any->disturbed >= side.any->rounds.size(); };
  const bool counts = rules.cpu_time || (!disturbed(first) && !disturbed(second));
  row.first_processes = row.processes = counts ? a.size() : 0;
  row.fewest_processes = fewest_samples;
  if (!a.empty()) {
    row.first_seconds = median_interval(a).middle;
    row.seconds = median_interval(b).middle;
    row.ratio = ratio_interval(a, b);
    row.scatter = spread_of(ratios);
    // Fewer than eleven rounds have no interval at the gate's level. So the row's own interval is widened by the factor
    // that holds for a normal distribution.
    const double wider = normal_quantile(level_of_gate(interval_level)) / normal_quantile(interval_level);
    if (counts) decide(row, first, second, inflate(row.ratio, wider * wider), rules);
  }
  if (row.verdict != Verdict::inconclusive) return;
  row.reason = !counts                       ? "other programs disturbed every round: a quieter machine, or --cpu_time"
               : row.missing_processes() > 0 ? fmt::format("{} rounds have both; {} more needed for an interval",
                                                           a.size(), row.missing_processes())
                                             : "the rounds differ too much: more of them, or a quieter machine";
}

/// A row without its times. A row that is missing or fails already has its verdict.
ComparedRow begin_row(const std::string& name, const SideRow& first, const SideRow& second) {
  const RunRow *a = first.any, *b = second.any;
  ComparedRow row{name, (a != nullptr ? a : b)->key};
  if (a == nullptr || b == nullptr) {
    row.verdict = Verdict::missing;
    row.reason = a == nullptr ? "not in the first" : not_in_second;
    return row;
  }
  row.grades = first.grade + (first.grade.empty() || second.grade.empty() ? "" : " ") + second.grade;
  row.disturbed = first.disturbed.size() + second.disturbed.size() + a->disturbed + b->disturbed;
  row.rerun = b->rerun;
  if (!second.has_times()) {
    row.verdict = first.has_times() ? Verdict::fails : Verdict::inconclusive;
    row.reason = (first.has_times() ? "" : "fails in both: ") + b->failure;
  } else if (!first.has_times()) {
    row.reason = "fails in the first alone: " + a->failure;
  }
  return row;
}

/// Adds to the reason what differs besides the times: the picked algorithm, and more memory.
void add_differences(ComparedRow& row, const RunRow& a, const RunRow& b) {
  const auto add = [&](const std::string& text) { row.reason += (row.reason.empty() ? "" : "; ") + text; };
  if (!a.algorithm.empty() && !b.algorithm.empty() && a.algorithm != b.algorithm)
    add(fmt::format("picked {} instead of {}", b.algorithm, a.algorithm));
  if (a.plan_MiB > 0 && b.plan_MiB > more_memory * a.plan_MiB)
    add(fmt::format("{:.1f} -> {:.1f} MiB", a.plan_MiB, b.plan_MiB));
}

void sort_rows(std::vector<ComparedRow>& rows) {
  std::ranges::stable_sort(
      rows, {}, [](const ComparedRow& row) { return std::pair(row.verdict, -std::abs(std::log(row.ratio.middle))); });
}

double geometric_mean(const std::vector<double>& values) {
  double logs = 0;
  for (const double each : values) logs += std::log(each);
  return std::exp(logs / static_cast<double>(values.size()));
}

/// Adds the means over networks: geometric means of the ratios of whole passes and trainings. `rows` are of one pair.
void add_means(std::vector<MeanRatio>& means, const std::vector<ComparedRow>& rows) {
  std::map<std::pair<std::string, std::string>, std::vector<const ComparedRow*>> groups;
  for (const ComparedRow& row : rows)
    if (row.processes > 0 && (row.is_whole() || row.key.value("what", std::string()) == "train"))
      groups[{row.key.value("part", std::string()), row.key.value("type", std::string())}].push_back(&row);
  for (const auto& [of, group] : groups) {
    std::set<std::string> networks;
    std::vector<double> ratios, of_rounds;
    std::map<std::int64_t, std::vector<double>> rounds;
    for (const ComparedRow* row : group) {
      networks.insert(row->key.value("network", std::string()));
      ratios.push_back(row->ratio.middle);
      for (const auto& [round, ratio] : row->round_ratios) rounds[round].push_back(ratio);
    }
    if (networks.size() < 2 || networks.size() != group.size()) continue;  // the rows differ in more than the network
    for (const auto& [round, its] : rounds)
      if (its.size() == group.size()) of_rounds.push_back(geometric_mean(its));
    const double middle = geometric_mean(ratios);
    // std::get, because clang-tidy 16 crashes at a member of a binding
    MeanRatio mean{std::get<0>(of), std::get<1>(of), rows.front().first, rows.front().second, networks.size(), middle};
    if (of_rounds.size() >= fewest_samples) {
      const Interval ratio = median_interval(of_rounds);
      mean.interval = {std::min(ratio.low, middle), middle, std::max(ratio.high, middle)};
    }
    means.push_back(std::move(mean));
  }
}

/// The variant among `others` with the lowest median of a row. Null if no variant has times of this row.
const Variant* fastest_of(const std::vector<const Variant*>& others, const std::string& name, bool cpu_time) {
  std::pair<double, const Variant*> best{std::numeric_limits<double>::infinity(), nullptr};
  for (const Variant* one : others)
    if (const SideRow side = side_of(*one, name, cpu_time); side.has_times())
      best = std::min(best, {median_interval(side.seconds()).middle, one});
  return best.second;
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

bool ComparedRow::is_whole() const {
  const std::string what = key.value("what", std::string());
  return !is_layer() && (what == "net" || what == "ledger");
}

std::size_t ComparedRow::missing_processes() const {
  const std::size_t least = std::min(first_processes, processes);
  return fewest_processes > least ? fewest_processes - least : 0;
}

std::size_t Comparison::count(Verdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count(rows, verdict, &ComparedRow::verdict));
}

std::size_t Comparison::processes_wanted(const ComparedRow& row, double change) const {
  // If the interval is narrower than the change, noise can neither hide the change nor make equal rows seem different.
  // So half of the interval must be less than half of the change.
  constexpr double share_of_change = 0.45;
  const double share = share_of_change * change;
  if (row.fewest_processes == 0 || (paired && row.processes == 0)) return 0;
  return std::max(row.fewest_processes,
                  paired ? pairs_to_resolve(share, row.scatter, level) : samples_to_resolve(share, row.scatter, level));
}

std::size_t Comparison::processes_wanted(double change) const {
  std::size_t most = 0;
  for (const ComparedRow& row : rows)
    if (row.verdict == Verdict::inconclusive) most = std::max(most, processes_wanted(row, change));
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
  std::map<std::string, std::pair<SideRow, SideRow>> sides;
  for (const Processes* processes : {&first, &second})
    for (const RunFile& file : *processes)
      for (const auto& [name, row] : file.rows) {
        auto& [a, b] = sides[name];
        add_process(processes == &first ? a : b, row, fmt::format("{}: {}", file.path.string(), name), rules);
      }
  const auto has_both = [](const auto& side) {
    return side.second.first.has_times() && side.second.second.has_times();
  };
  Comparison all;
  const std::ptrdiff_t judged = std::ranges::count_if(sides, has_both);
  all.level = 1 - (1 - interval_level) / static_cast<double>(std::max(judged, std::ptrdiff_t{1}));
  for (const auto& side : sides) {
    const auto& [a, b] = side.second;
    ComparedRow& row = all.rows.emplace_back(begin_row(side.first, a, b));
    if (!has_both(side)) continue;
    compare_processes(row, a, b, rules, all.level);
    add_differences(row, *a.any, *b.any);
  }
  if (all.count(Verdict::missing) == all.rows.size())
    throw UsageError(fmt::format("{} and {} have no row in common: the first has {}, the second {}",
                                 first.front().path.string(), second.front().path.string(),
                                 first.front().rows.begin()->first, second.front().rows.begin()->first));
  sort_rows(all.rows);
  return all;
}

Comparison compare_paired(const std::vector<Variant>& variants, const std::vector<std::string>& subjects,
                          const CompareRules& rules) {
  for (const std::string& subject : subjects)
    if (std::ranges::find(variants, subject, &Variant::name) == variants.end())
      throw UsageError(fmt::format("--subject: {} is no variant of the file; valid names: {}", subject,
                                   fmt::join(variants | std::views::transform(&Variant::name), ", ")));
  std::vector<const Variant*> of_subjects, others;
  const bool versions = subjects.empty();
  for (const Variant& variant : variants) {
    const bool is_subject =
        versions ? &variant != &variants.front() : std::ranges::find(subjects, variant.name) != subjects.end();
    (is_subject ? of_subjects : others).push_back(&variant);
  }
  std::vector<const Variant*> firsts = others;
  if (others.size() > 1) firsts.push_back(nullptr);  // the fastest non-subject
  Comparison all;
  all.paired = true;
  const auto compare_with = [&](const Variant* first, const Variant* second) {
    std::set<std::string> names;
    for (const Variant* side : {first, second})
      if (side != nullptr)
        for (const auto& [name, row] : side->rows) names.insert(name);
    std::vector<ComparedRow> rows;
    for (const std::string& name : names) {
      const Variant* const before = first != nullptr ? first : fastest_of(others, name, rules.cpu_time);
      // Not every competitor of a race has every row.
      if (before == nullptr || (!versions && (!before->rows.contains(name) || !second->rows.contains(name)))) continue;
      const SideRow a = side_of(*before, name, rules.cpu_time), b = side_of(*second, name, rules.cpu_time);
      ComparedRow& row = rows.emplace_back(begin_row(name, a, b));
      row.first = first != nullptr ? before->name : "fastest";
      row.second = second->name;
      if (first == nullptr) row.fastest = before->name;
      if (!a.has_times() || !b.has_times()) continue;
      compare_rounds(row, a, b, rules);
      if (versions) add_differences(row, *a.any, *b.any);
    }
    add_means(all.means, rows);
    sort_rows(rows);
    std::ranges::move(rows, std::back_inserter(all.rows));
  };
  for (const Variant* subject : of_subjects)
    for (const Variant* first : firsts) compare_with(first, subject);
  if (all.count(Verdict::missing) == all.rows.size())
    throw UsageError("no row has the same name in two of the variants");
  return all;
}

}  // namespace lamina::bench
