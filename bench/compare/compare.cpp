// The subcommand `compare`.

#include "compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/io/result_file.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

std::string milliseconds(double seconds) { return seconds > 0 ? fmt::format("{:.3f}", 1e3 * seconds) : ""; }

TextTable table_of(const Comparison& comparison) {
  TextTable table{{{"row"},
                   {"first ms", true},
                   {"second ms", true},
                   {"ratio", true},
                   {"interval"},
                   {"verdict"},
                   {"grades"},
                   {"reason"}}};
  for (const ComparedRow& row : comparison.rows) {
    const bool timed = row.first_seconds > 0 && row.seconds > 0;
    table.rows.push_back({row.name, milliseconds(row.first_seconds), milliseconds(row.seconds),
                          timed ? fmt::format("{:.4f}", row.ratio.middle) : "",
                          timed ? fmt::format("{:.4f} .. {:.4f}", row.ratio.low, row.ratio.high) : "",
                          to_string(row.verdict), row.grades, row.reason});
  }
  return table;
}

std::string head(const CompareOptions& options, const Processes& first, const Processes& second) {
  std::string text;
  for (const auto& [which, path, side] :
       {std::tuple("First", &options.first, &first), std::tuple("Second", &options.second, &second)}) {
    const auto fact = [&](const char* name, const char* before) {
      const std::string value = side->front().fact(name);
      return value.empty() ? value : before + value;
    };
    text += fmt::format("{}: {}, {} process{}{}{}\n", which, path->string(), side->size(),
                        side->size() == 1 ? "" : "es", fact("commit", ", commit "), fact("time_start", ", begun "));
  }
  if (options.rules.cpu_time) text += "Times are processor times.\n";
  if (options.other_machine)
    for (const std::string& difference : other_machine(first.front(), second.front()))
      text += fmt::format("Different machines: {}\n", difference);
  return text + "\n";
}

std::string percent(double share) { return fmt::format("{:g} %", 100 * share); }

/// How many processes decide what is not decided.
std::string processes_text(const Comparison& comparison, double smallest) {
  constexpr std::size_t most = 1000, few = 50;
  const std::size_t wanted = comparison.processes_wanted(smallest);
  if (wanted == 0) return {};
  std::string text = fmt::format("To find a change of {} in every row, or to call the row equal, ", percent(smallest));
  text += wanted > most ? fmt::format("takes more than {} processes of each side, or a quieter machine.\n", most)
                        : fmt::format("run {} processes of each side, in turns, a folder of files for each.\n", wanted);
  for (const double larger : {0.03, 0.05, 0.1, 0.2})
    if (const std::size_t its = comparison.processes_wanted(larger); larger > smallest && its <= few && few < wanted)
      return text + fmt::format("For {} it is {}: --smallest={:g}%\n", percent(larger), its, 100 * larger);
  return text;
}

std::string summary(const Comparison& comparison, const CompareRules& rules) {
  std::vector<std::string> counts;
  for (const Verdict verdict :
       {Verdict::slower, Verdict::faster, Verdict::equal, Verdict::undecided, Verdict::fails, Verdict::missing})
    if (const std::size_t count = comparison.count(verdict); count > 0)
      counts.push_back(fmt::format("{} {}", count, to_string(verdict)));
  std::string text = fmt::format(
      "\n{0}. Each interval is of {1:.4g} %, so that all of them together hold by {2:g} %.\n"
      "Equal: the whole interval is within {3} of 1. Slower, faster: the interval is on one side of 1, and the ratio "
      "differs from 1 by more than half of {3}.\n",
      fmt::join(counts, ", "), 100 * comparison.level, 100 * interval_level, percent(rules.smallest));
  if (std::any_of(comparison.rows.begin(), comparison.rows.end(), [](const auto& row) { return row.disturbed > 0; }))
    text +=
        "Disturbed processes do not count. --any_load counts them; --cpu_time compares processor time, which other "
        "programs change less.\n";
  return text + processes_text(comparison, rules.smallest);
}

Json json_of(const CompareOptions& options, const Processes& first, const Processes& second,
             const Comparison& comparison) {
  Json rows = Json::array();
  for (const ComparedRow& row : comparison.rows) {
    Json json = {{"name", row.name}, {"key", row.key}, {"verdict", to_string(row.verdict)}};
    if (row.first_seconds > 0 && row.seconds > 0) {
      json["ratio"] = row.ratio.middle;
      json["low"] = row.ratio.low;
      json["high"] = row.ratio.high;
      json["first_seconds"] = row.first_seconds;
      json["seconds"] = row.seconds;
    }
    json["first_processes"] = row.first_processes;
    json["processes"] = row.processes;
    if (row.fewest_processes > 0) json["processes_wanted"] = comparison.processes_wanted(row, options.rules.smallest);
    if (!row.reason.empty()) json["reason"] = row.reason;
    rows.push_back(std::move(json));
  }
  Json document = {{"context", second.front().context},
                   {"first_context", first.front().context},
                   {"files", {options.first.string(), options.second.string()}},
                   {"level", comparison.level},
                   {"smallest", options.rules.smallest},
                   {"time", options.rules.cpu_time ? "processor" : "duration"}};
  if (options.rules.fail_if_slower) document["fail_if_slower"] = *options.rules.fail_if_slower;
  document["comparisons"] = std::move(rows);
  return document;
}

std::string gate_text(const Comparison& comparison, const std::vector<const ComparedRow*>& failed, double limit) {
  const std::size_t open = comparison.count(Verdict::undecided);
  if (failed.empty())
    return fmt::format("No row fails the limit of {}{}.\n", percent(limit),
                       open > 0 ? fmt::format("; {} are not decided", open) : "");
  std::string text = fmt::format("Fails the limit of {}:\n", percent(limit));
  for (const ComparedRow* row : failed)
    text += fmt::format("  {}: {}{}\n", row->name, to_string(row->verdict),
                        row->verdict == Verdict::slower ? fmt::format(", {:.3f} times", row->ratio.middle) : "");
  return text;
}

void check_machine(const RunFile& first, const RunFile& second, const CompareOptions& options) {
  if (const std::vector<std::string> differences = other_machine(first, second);
      !differences.empty() && !options.other_machine)
    throw UsageError(fmt::format("{} and {} are of different machines ({}); --other_machine compares them anyway",
                                 first.path.string(), second.path.string(), fmt::join(differences, "; ")));
}

bool have_the_same_times(const RunFile& a, const RunFile& b) {
  return std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(), [](const auto& one, const auto& other) {
    return one.first == other.first && one.second.seconds == other.second.seconds;
  });
}

/// Throws UsageError unless all processes of a side ran one program on one machine, each with its own file.
void check_alike(const Processes& side, const CompareOptions& options) {
  for (std::size_t i = 0; i < side.size(); ++i) {
    const RunFile& file = side[i];
    for (std::size_t before = i; before-- > 0 && side[before].fact("time_start") == file.fact("time_start");)
      if (have_the_same_times(side[before], file))
        throw UsageError(fmt::format("{} and {} are of one process, which counts once; remove one of them",
                                     side[before].path.string(), file.path.string()));
    check_machine(side.front(), file, options);
    for (const char* fact : program_facts)
      if (file.fact(fact) != side.front().fact(fact))
        throw UsageError(fmt::format("{} and {} are of different programs ({}: {} and {}); give each a folder",
                                     side.front().path.string(), file.path.string(), fact, side.front().fact(fact),
                                     file.fact(fact)));
  }
}

}  // namespace

int compare_files(const CompareOptions& options, const Print& print) {
  for (const std::filesystem::path& side : {options.first, options.second}) {
    std::error_code error;  // of a file that is not there
    if (!options.out.empty() && std::filesystem::equivalent(options.out, side, error))
      throw UsageError(
          fmt::format("--benchmark_out={} is one of the files to compare; give another", options.out.string()));
  }
  if (!options.out.empty()) check_writable(options.out);
  const Processes first = read_processes(options.first), second = read_processes(options.second);
  check_alike(first, options);
  check_alike(second, options);
  check_machine(first.front(), second.front(), options);
  const Comparison comparison = compare(first, second, options.rules);
  const std::optional<double>& limit = options.rules.fail_if_slower;
  const auto failed = limit ? comparison.failed(*limit) : std::vector<const ComparedRow*>();
  const TextTable table = table_of(comparison);
  if (options.format == Format::csv)
    print(table.csv());
  else
    print(head(options, first, second) + table.text() + summary(comparison, options.rules) +
          (limit ? gate_text(comparison, failed, *limit) : ""));
  if (!options.out.empty()) replace_file(options.out, file_text(json_of(options, first, second, comparison)));
  return failed.empty() ? 0 : slower_status;
}

}  // namespace lamina::bench
