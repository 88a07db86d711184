// The subcommand `compare`.

#include "comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "lamina/error.h"

namespace lamina::bench {
namespace {

std::string milliseconds(double seconds) { return seconds > 0 ? fmt::format("{:.3f}", 1e3 * seconds) : ""; }

/// The table of some rows. `with_sides`: the rows are of several pairs of variants, and each row names its pair.
TextTable table_of(const Comparison& comparison, const std::vector<const ComparedRow*>& rows, bool with_sides) {
  const bool names = comparison.paired && !with_sides && !rows.empty();
  const bool has_fastest = std::ranges::any_of(rows, [](const ComparedRow* row) { return !row->fastest.empty(); });
  const std::string first = names ? rows.front()->first : "first", second = names ? rows.front()->second : "second";
  TextTable table{{"row", ">" + first + " ms", ">" + second + " ms", ">ratio", "interval", "verdict",
                   comparison.paired ? "disturbed" : "grades", "reason"}};
  if (has_fastest) table.columns.insert(table.columns.begin() + 1, "fastest");
  if (with_sides) table.columns.insert(table.columns.begin(), {"first", "second"});
  for (const ComparedRow* row : rows) {
    const bool timed = row->first_seconds > 0 && row->seconds > 0;
    table.rows.push_back(
        {row->name, milliseconds(row->first_seconds), milliseconds(row->seconds),
         timed ? fmt::format("{:.4f}", row->ratio.middle) : "",
         timed && row->missing_processes() == 0 ? fmt::format("{:.4f} .. {:.4f}", row->ratio.low, row->ratio.high) : "",
         to_string(row->verdict),
         !comparison.paired ? row->grades
         : timed            ? fmt::format("{} of {}", row->disturbed, 2 * row->round_ratios.size())
                            : "",
         row->reason});
    if (has_fastest) table.rows.back().insert(table.rows.back().begin() + 1, row->fastest);
    if (with_sides) table.rows.back().insert(table.rows.back().begin(), {row->first, row->second});
  }
  return table;
}

TextTable csv_table(const Comparison& comparison) {
  std::vector<const ComparedRow*> rows;
  for (const ComparedRow& row : comparison.rows) rows.push_back(&row);
  return table_of(comparison, rows, comparison.paired);
}

/// A table for each pair of variants. `versions`: the variants took turns, and none is a subject. If set, layers that
/// are equal or inconclusive are left out, because a thousand such rows hide the single layer that differs.
std::string tables_of(const Comparison& comparison, bool versions) {
  std::string text;
  for (auto row = comparison.rows.begin(); row != comparison.rows.end();) {
    const std::string &first = row->first, &second = row->second;
    std::vector<const ComparedRow*> shown;
    std::size_t left_out = 0;
    for (; row != comparison.rows.end() && row->first == first && row->second == second; ++row) {
      const bool alike = row->verdict == Verdict::equal || row->verdict == Verdict::inconclusive;
      const bool hidden = versions && row->is_layer() && alike;
      left_out += hidden ? 1 : 0;
      if (!hidden) shown.push_back(&*row);
    }
    if (comparison.paired) text += fmt::format("{} against {}:\n\n", second, first);
    text += table_of(comparison, shown, false).text();
    if (left_out > 0)
      text += fmt::format("{} rows of layers are equal or inconclusive; --format=csv has them\n", left_out);
    for (const MeanRatio& mean : comparison.means)
      if (mean.first == first && mean.second == second)
        text += fmt::format(
            "geometric mean of {} networks, {} {}: {:.3f}{}\n", mean.networks, mean.part, mean.type, mean.ratio,
            mean.interval ? fmt::format(" ({:.3f} .. {:.3f})", mean.interval->low, mean.interval->high) : "");
    text += "\n";
  }
  return text;
}

std::string head(const CompareOptions& options, const Processes& first, const Processes& second) {
  std::string text;
  const auto add = [&](const char* which, const std::filesystem::path& path, const Processes& side) {
    text += fmt::format("{}: {}, {} process{}", which, path.string(), side.size(), side.size() == 1 ? "" : "es");
    for (const char* name : {"commit", "time_start"})
      if (const std::string fact = side.front().fact(name); !fact.empty()) text += fmt::format(", {} {}", name, fact);
    text += "\n";
  };
  add("First", options.first, first);
  add("Second", options.second, second);
  if (options.other_machine)
    for (const std::string& difference : other_machine(first.front(), second.front()))
      text += fmt::format("Different machines: {}\n", difference);
  return text + "\n";
}

std::string percent(double share) { return fmt::format("{:g} %", 100 * share); }

/// Says how many processes or rounds would decide the inconclusive rows.
std::string processes_text(const Comparison& comparison, double smallest) {
  constexpr std::size_t most = 1000, few = 50;
  const std::size_t wanted = comparison.processes_wanted(smallest);
  if (wanted == 0) return {};
  std::string text = fmt::format("To find a change of {} in every row, or to call the row equal, run {}{} {}.\n",
                                 percent(smallest), wanted > most ? "over " : "", std::min(wanted, most),
                                 comparison.paired ? "rounds" : "processes of each side, in turns");
  for (const double larger : {0.03, 0.05, 0.1, 0.2})
    if (const std::size_t its = comparison.processes_wanted(larger); larger > smallest && its <= few && few < wanted)
      return text + fmt::format("For {} it is {}: --smallest={:g}%\n", percent(larger), its, 100 * larger);
  return text;
}

std::string summary(const Comparison& comparison, const CompareRules& rules) {
  std::vector<std::string> counts;
  for (const Verdict verdict :
       {Verdict::slower, Verdict::faster, Verdict::equal, Verdict::inconclusive, Verdict::fails, Verdict::missing})
    if (const std::size_t count = comparison.count(verdict); count > 0)
      counts.push_back(fmt::format("{} {}", count, to_string(verdict)));
  std::string text = fmt::format("{}. Each interval is of {:.4g} %", fmt::join(counts, ", "), 100 * comparison.level);
  text += comparison.paired ? ": of 100 equal rows, 5 at most are called slower or faster on average.\n"
                            : fmt::format("; all hold together with {:g} %.\n", 100 * interval_level);
  text += fmt::format(
      "Equal: the interval is within {0} of 1. Slower, faster: it is on one side, the ratio over half of {0} off.\n",
      percent(rules.smallest));
  if (std::ranges::any_of(comparison.rows, &ComparedRow::missing_processes))
    text += fmt::format("Rows with too few samples are judged only if the closest differ over {:g}-fold.\n", far_apart);
  if (std::ranges::any_of(comparison.rows, [](const auto& row) { return !row.grades.empty(); }))
    text += "Grades of the worst process, from A, quiet, to D, not to be relied on: see grade_reasons in the files.\n";
  if (rules.cpu_time) text += "Times are processor times.\n";
  if (std::ranges::any_of(comparison.rows, &ComparedRow::disturbed) && !comparison.paired)
    text +=
        "Disturbed processes do not count. --any_load counts them; --cpu_time compares processor time, which other "
        "programs change less.\n";
  return text + processes_text(comparison, rules.smallest);
}

/// The lists and facts of a comparison, as fields of a result file.
Json json_of(const Comparison& comparison, const CompareRules& rules) {
  Json rows = Json::array(), means = Json::array();
  for (const ComparedRow& row : comparison.rows) {
    Json json = {{"name", row.name}, {"key", row.key}, {"first", row.first}, {"second", row.second}};
    const auto add = [&](const char* name, const std::string& value) {
      if (!value.empty()) json[name] = value;
    };
    add("fastest", row.fastest);
    json["verdict"] = to_string(row.verdict);
    const Json times = {{"ratio", row.ratio.middle},
                        {"low", row.ratio.low},
                        {"high", row.ratio.high},
                        {"first_seconds", row.first_seconds},
                        {"seconds", row.seconds}};
    if (row.first_seconds > 0 && row.seconds > 0) json.update(times);
    if (!comparison.paired) json["first_processes"] = row.first_processes;
    json["processes"] = row.processes;
    if (const auto wanted = comparison.processes_wanted(row, rules.smallest)) json["processes_wanted"] = wanted;
    json["disturbed"] = row.disturbed;
    add("grades", row.grades);
    add("reason", row.reason);
    add("rerun", row.rerun);
    rows.push_back(std::move(json));
  }
  for (const MeanRatio& mean : comparison.means) {
    Json json = {{"part", mean.part},     {"type", mean.type},         {"first", mean.first},
                 {"second", mean.second}, {"networks", mean.networks}, {"ratio", mean.ratio}};
    if (mean.interval) json.update({{"low", mean.interval->low}, {"high", mean.interval->high}});
    means.push_back(std::move(json));
  }
  Json found = {
      {"level", comparison.level}, {"smallest", rules.smallest}, {"time", rules.cpu_time ? "processor" : "duration"}};
  if (rules.fail_if_slower) found["fail_if_slower"] = *rules.fail_if_slower;
  found["comparisons"] = std::move(rows);
  if (!means.empty()) found["means"] = std::move(means);
  return found;
}

/// Adds the answer of the gate to the text, and gives the exit status of the gate.
int pass_gate(std::string& text, const Comparison& comparison, double limit) {
  const std::vector<const ComparedRow*> failed = comparison.failed();
  const auto undecided = std::ranges::count_if(comparison.rows, &ComparedRow::is_undecided);
  text += fmt::format("{} of {} rows have too few samples to be judged. {} the limit of {}{}\n", undecided,
                      comparison.rows.size(), failed.empty() ? "No row fails" : "These rows fail", percent(limit),
                      failed.empty() ? "." : ":");
  for (const ComparedRow* row : failed)
    text += fmt::format("  {}{}: {}\n", row->name,
                        comparison.paired ? fmt::format(", {} against {}", row->second, row->first) : "",
                        to_string(row->verdict));
  return !failed.empty() ? slower_status : undecided > 0 ? undecided_status : 0;
}

void check_machine(const RunFile& first, const RunFile& second, const CompareOptions& options) {
  if (const auto differences = other_machine(first, second); !differences.empty() && !options.other_machine)
    throw UsageError(fmt::format("{} and {} are of different machines ({}); --other_machine compares them anyway",
                                 first.path.string(), second.path.string(), fmt::join(differences, "; ")));
}

/// Throws UsageError unless all processes of a side ran one program on one machine, each with its own file.
void check_alike(const Processes& side, const CompareOptions& options) {
  for (const RunFile& file : side) {
    const RunFile& same = *std::ranges::find(side, file.rows, &RunFile::rows);
    if (&same != &file)
      throw UsageError(fmt::format("{} and {} come from the same process, which counts once; remove one of the files",
                                   same.path.string(), file.path.string()));
    check_machine(side.front(), file, options);
    for (const char* fact : program_facts)
      if (file.fact(fact) != side.front().fact(fact))
        throw UsageError(fmt::format("{} and {} are of different programs ({}: {} and {}); give each a folder",
                                     side.front().path.string(), file.path.string(), fact, side.front().fact(fact),
                                     file.fact(fact)));
  }
}

/// Prints the comparison, adds it to the document and writes the document. Gives the exit status.
int report(const CompareOptions& options, const Comparison& comparison, const std::string& head, Json document,
           const Print& print) {
  std::string text =
      head + tables_of(comparison, comparison.paired && options.subjects.empty()) + summary(comparison, options.rules);
  const std::optional<double>& limit = options.rules.fail_if_slower;
  const int status = limit ? pass_gate(text, comparison, *limit) : 0;
  print(options.format == Format::csv ? csv_table(comparison).csv() : text);
  if (!options.out.empty()) {
    document.erase("means");
    document.update(json_of(comparison, options.rules));
    replace_file(options.out, file_text(document));
  }
  return status;
}

}  // namespace

int compare_files(const CompareOptions& options, const Print& print) {
  for (const std::filesystem::path& side : {options.first, options.second}) {
    std::error_code error;  // for a file that is not there
    for (const std::filesystem::path& out : {options.out, options.out.parent_path() / "."})
      if (!options.out.empty() && std::filesystem::equivalent(out, side, error))
        throw UsageError(
            fmt::format("--benchmark_out={} is one of the files to compare, or in their folder", options.out.string()));
  }
  if (!options.out.empty()) check_writable(options.out);
  if (!options.paired.empty()) {
    PairedFile file = read_paired_file(options.paired);
    const Comparison comparison = compare_paired(file.variants, options.subjects, options.rules);
    return report(options, comparison, "", std::move(file.document), print);
  }
  const Processes first = read_processes(options.first), second = read_processes(options.second);
  check_alike(first, options);
  check_alike(second, options);
  check_machine(first.front(), second.front(), options);
  Comparison comparison = compare(first, second, options.rules);
  for (ComparedRow& row : comparison.rows) {
    row.first = options.first.string();
    row.second = options.second.string();
  }
  Json document = {{"context", second.front().context}, {"first_context", first.front().context}};
  return report(options, comparison, head(options, first, second), std::move(document), print);
}

}  // namespace lamina::bench
