// The program from its arguments to its exit status.

#include "program.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <set>
#include <utility>

#include "context/context.h"
#include "context/devices.h"
#include "io/interrupt.h"
#include "io/quantities.h"
#include "io/result_file.h"
#include "lamina/choice_cache.h"
#include "lamina/error.h"
#include "options/options.h"
#include "race/serve/serve.h"
#include "rows/progress.h"
#include "rows/report.h"
#include "rows/runner.h"
#include "rows/table.h"
#include "tasks/describe.h"
#include "tasks/engines.h"
#include "tasks/frontier.h"
#include "tasks/ledger.h"

namespace lamina::bench {
namespace {

std::vector<Row> picked(std::vector<Row> rows, const std::string& filter, const std::string& left_out) {
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(row.name);
  const std::vector<bool> chosen = pick(names, filter, left_out);
  std::vector<Row> kept;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (chosen[i]) kept.push_back(std::move(rows[i]));
  return kept;
}

int list_rows(Workshop& workshop, const RunOptions& options) {
  std::vector<Row> rows = all_rows(workshop);
  if (options.filter) rows = picked(std::move(rows), *options.filter, too_small_for(options));
  std::string text;
  for (const Row& row : rows) text += row.name + "\n";
  fmt::print("{}", text);
  return 0;
}

Facts peak_facts(const Workshop& workshop) {
  Facts facts;
  for (const auto& [key, peak] : workshop.peaks()) {
    facts.emplace_back("peak_GFLOPs_" + key, fmt::format("{:.1f}", 1e-9 * peak.flops));
    facts.emplace_back("peak_is_" + key, peak.description());
  }
  return facts;
}

void add(nlohmann::ordered_json& context, const Facts& facts) {
  for (const auto& [key, value] : facts) context[key] = value;
}

/// Names of the files of --table, without their ends: the time at the start keeps them apart.
std::filesystem::path stem(const RunOptions& options, const Facts& start) {
  std::string time = start.front().second;
  std::replace(time.begin(), time.end(), ':', '-');
  return options.results / time;
}

void announce(const Progress& progress, const Runner& runner, Workshop& workshop, bool table) {
  std::set<const Group*> groups;
  for (const Row& row : runner.rows()) groups.insert(row.group.get());
  if (table)
    for (const std::string& reason : workshop.left_out()) fmt::print(stderr, "Left out: {}\n", reason);
  const std::string& backend = runner.rows().front().group->facts.backend;
  const double seconds = progress.guessed_seconds();
  fmt::print(stderr, "{} measurement{}, each of one pass to warm up and {} timed{}\n", groups.size(),
             groups.size() == 1 ? "" : "s", workshop.passes(backend),
             seconds > 0 ? fmt::format(": about {} in all", seconds_text(seconds)) : "");
}

/// Writes what is left to write. True if all could be written.
bool finish_files(ResultFile& file, Table* table, const std::filesystem::path& table_stem) {
  bool written = true;
  const auto attempt = [&](auto&& write) {
    try {
      write();
    } catch (const FileError& error) {
      fmt::print(stderr, "lamina_bench: {}\n", error.what());
      written = false;
    }
  };
  attempt([&] { file.save(); });
  if (table == nullptr) return written;
  attempt([&] { replace_file(table_stem.string() + ".txt", table->text()); });
  attempt([&] { replace_file(table_stem.string() + ".md", table->markdown()); });
  attempt([&] { replace_file(table_stem.string() + ".table.json", table->json().dump(2) + "\n"); });
  if (written)
    fmt::print(stderr, "Rows: {}; table: {}.txt, .md, .table.json\n", file.path().string(), table_stem.string());
  return written;
}

int run_rows(Workshop& workshop, const RunOptions& options) {
  const Facts start = passing_facts("start");
  const std::filesystem::path table_stem = stem(options, start);
  std::filesystem::path out = options.out;
  if (out.empty() && options.table) out = table_stem.string() + ".json";
  if (!out.empty()) check_writable(out);
  if (options.table) check_writable(table_stem.string() + ".txt");

  std::vector<Row> rows =
      picked(all_rows(workshop), options.filter.value_or(default_filter(options.quick)), too_small_for(options));
  check_files_are_used(rows, options);
  Progress progress(workshop, rows);
  if (!options.long_run) check_duration(progress);
  Runner runner(workshop, std::move(rows), progress);
  announce(progress, runner, workshop, options.table);

  ResultFile file(out);
  Table table;
  Report report(runner.rows(), file, options.screen, options.table ? &table : nullptr, progress);
  for (const Facts& facts : {lasting_facts(workshop), start})
    for (const auto& [key, value] : facts) benchmark::AddCustomContext(key, value);
  for (const auto& [key, value] : options.context) benchmark::AddCustomContext(key, value);
  for (const auto& [key, value] : peak_facts(workshop)) benchmark::AddCustomContext(key, value);

  runner.run(report);
  progress.clear();

  add(file.document["context"], peak_facts(workshop));  // those that were not measured before the rows
  add(file.document["context"], passing_facts("end"));
  file.document["context"]["interrupted"] = interrupted() != 0;
  if (options.published) table.add_published();
  if (options.table && options.screen == Screen::console) fmt::print("\n{}", table.text());
  if (options.screen == Screen::json) fmt::print("{}\n", file.document.dump(2));
  const bool flushed = std::fflush(stdout) == 0;
  if (!flushed) fmt::print(stderr, "lamina_bench: cannot write to standard output\n");
  const bool written = finish_files(file, options.table ? &table : nullptr, table_stem) && flushed;

  if (interrupted() != 0) return 128 + interrupted();
  if (runner.any_failed()) fmt::print(stderr, "lamina_bench: some rows failed; their text says why\n");
  if (!runner.any_measured()) fmt::print(stderr, "lamina_bench: no row could run\n");
  return written && runner.any_measured() && !runner.any_failed() ? 0 : 1;
}

/// A cuDNN that is named is there, whether or not a device is found that could use it.
void check_cudnn_exists(const std::string& directory) {
  if (!directory.empty() && !std::filesystem::exists(directory))
    throw UsageError(fmt::format("--cudnn={}: there is no such directory", directory));
}

void print_now(const std::string& text) {
  fmt::print("{}", text);
  if (std::fflush(stdout) != 0) throw FileError("cannot write to standard output");
}

/// A file of choices is read before anything is measured: an invalid one fails up front.
void check_choice_file(const char* flag, const std::filesystem::path& file) {
  if (file.empty()) return;
  try {
    ChoiceCache{file};
  } catch (const FileError& error) {
    throw FileError(fmt::format("{}={}", flag, error.what()));
  }
}

void check_files(const Settings& settings) {
  if (const std::filesystem::path folder = settings.choice_cache.parent_path();
      !folder.empty() && !std::filesystem::is_directory(folder))
    throw UsageError(fmt::format("--choice_cache={}: there is no folder {}; make it first",
                                 settings.choice_cache.string(), folder.string()));
  check_choice_file("--choices", settings.choices);
  check_choice_file("--choice_cache", settings.choice_cache);
}

int status_of_interrupt() { return interrupted() != 0 ? 128 + interrupted() : 0; }

/// Does what a subcommand is for; gives the exit status.
struct Doer {
  const MakeBackend& make;

  int operator()(const RunOptions& options) const {
    if (!options.list) catch_interrupts();
    check_files(options);
    check_cudnn_exists(options.cudnn);
    Workshop workshop(options, make);
    return options.list ? list_rows(workshop, options) : run_rows(workshop, options);
  }
  int operator()(const LedgerOptions& options) const {
    catch_interrupts();
    check_files(options);
    Workshop workshop(options, make);
    ledgers(workshop, options, print_now);
    return status_of_interrupt();
  }
  int operator()(const FrontierOptions& options) const {
    catch_interrupts();
    check_files(options);
    check_choice_file("--choices_out", options.choices_out);
    Workshop workshop(options, make);
    frontiers(workshop, options, print_now);
    return status_of_interrupt();
  }
  int operator()(const MemoryOptions& options) const {
    check_files(options);
    Workshop workshop(options, make);
    print_now(describe_memory(workshop, options));
    return 0;
  }
  int operator()(const DevicesOptions& options) const {
    check_files(options);
    Workshop workshop(options, make);
    print_now(device_table(workshop, options.format));
    return 0;
  }
  int operator()(const DescribeOptions& options) const { return print_now(describe(options)), 0; }
  int operator()(const NetworksOptions& options) const { return print_now(list_networks(options.format)), 0; }
  int operator()(const EnginesOptions& options) const { return print_now(cudnn_engines(options)), 0; }
  int operator()(const ServeOptions& options) const { return run_serve(options.config); }
};

}  // namespace

int run_program(int argc, char** argv, const MakeBackend& make) {
  const Parsed parsed = parse_options(argc, argv);
  if (parsed.exit_status) return *parsed.exit_status;
  int only_the_name = 1;
  benchmark::Initialize(&only_the_name, argv);
  try {
    return std::visit(Doer{make}, parsed.command);
  } catch (const UsageError& error) {
    fmt::print(stderr, "lamina_bench: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "lamina_bench: {}\n", error.what());
    return 1;
  }
}

}  // namespace lamina::bench
