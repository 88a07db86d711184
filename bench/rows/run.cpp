// The rows that a filter picks, with their file and table.

#include "run.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>
#include <utility>

#include "bench/context/build.h"
#include "bench/context/context.h"
#include "bench/io/interrupt.h"
#include "bench/io/result_file.h"
#include "bench/io/text.h"
#include "bench/machine/ranks.h"
#include "lamina/error.h"
#include "progress.h"
#include "report.h"
#include "runner.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

/// The rows that are asked for and that the filter picks.
std::vector<Row> picked(Session& session, const RunOptions& options) {
  std::string left_out;
  std::vector<Row> rows = all_rows(session, options, &left_out);
  if (!options.networks.empty() && !rows.empty() && !left_out.empty()) fmt::print(stderr, "{}\n", left_out);
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(row.name);
  const std::vector<bool> chosen = pick(names, options.filter.value_or(default_filter(options)), left_out);
  std::vector<Row> kept;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (chosen[i]) kept.push_back(std::move(rows[i]));
  return kept;
}

int list_rows(Session& session, const RunOptions& options) {
  for (const Row& row : picked(session, options)) fmt::print("{}\n", row.name);
  return 0;
}

/// The library's reporter of this form, for a file.
std::unique_ptr<benchmark::BenchmarkReporter> text_reporter(Screen form) {
  if (form == Screen::console) return std::make_unique<benchmark::ConsoleReporter>(benchmark::ConsoleReporter::OO_None);
  BENCHMARK_DISABLE_DEPRECATED_WARNING
  return std::make_unique<benchmark::CSVReporter>();
  BENCHMARK_RESTORE_DEPRECATED_WARNING
}

void announce(const Progress& progress, const Runner& runner, Session& session, const RunOptions& options) {
  std::vector<std::string> missing = backend_names();
  std::erase_if(missing, [&](const std::string& name) {
    return name == "cuda-host" || std::ranges::find(session.backends.names(), name) != session.backends.names().end();
  });
  if (options.table && options.backends.names.empty() && !missing.empty())
    fmt::print(stderr, "Left out on this machine: {} (\"left_out\" in the file says why)\n", fmt::join(missing, ", "));
  const std::size_t groups = runner.outcomes().size();
  const bool counted = options.noise == 0 && options.min_time == 0;
  const double seconds = counted ? progress.left_seconds() : 0;
  fmt::print(stderr, "{} measurement{}, each after one pass to warm up{}\n", groups, groups == 1 ? "" : "s",
             seconds > 0 ? fmt::format(": about {} in all", seconds_text(seconds)) : "");
}

/// Adds what --benchmark_context gives. Throws UsageError.
void add_facts(Json& context, const std::vector<std::string>& facts) {
  for (const std::string& fact : facts) {
    const std::size_t equals = fact.find('=');
    const std::string name = fact.substr(0, equals);
    if (name.empty() || equals == std::string::npos || context.contains(name))
      throw UsageError(fmt::format("--benchmark_context: \"{}\" is no KEY=VALUE with a key of its own", fact));
    context[name] = fact.substr(equals + 1);
  }
}

int measure_rows(Session& session, const RunOptions& options) {
  const std::filesystem::path& out = options.out;
  if (!out.empty()) check_writable(out), claim(out);
  if (!options.trace.empty()) check_writable(options.trace);

  std::vector<Row> rows = picked(session, options);
  std::string same = fmt::format("lamina {} of commit {}", build::lamina_version, build::commit);
  for (const Row& row : rows) same += ", " + row.name;
  check_same(*session.ranks, same);
  Progress progress(session.peaks, rows, options.passes);
  Runner runner(session, std::move(rows), options, progress);
  announce(progress, runner, session, options);

  // The documents of the file, and of standard output as JSON.
  std::array documents = {ResultFile(options.out_format == Screen::json ? out : ""), ResultFile("")};
  Json context = start_context(session.backends);
  add_facts(context, options.context);
  add_peaks(context, session.peaks);
  for (ResultFile& document : documents) document.document["context"] = context;
  const auto by_library = text_reporter(options.out_format);
  std::ostringstream text;
  by_library->SetOutputStream(&text);
  const bool to_json = options.out_format == Screen::json;
  Report file =
      to_json ? file_report(runner, documents[0]) : text_report(runner, *by_library, options.out_format == Screen::csv);
  Report screen = options.table ? table_report(runner)
                  : options.screen == Screen::json
                      ? file_report(runner, documents[1])
                      : text_report(runner, *benchmark::CreateDefaultDisplayReporter(), options.screen == Screen::csv);
  runner.run(screen, file);
  clear_step();

  for (ResultFile& document : documents) end_context(document.document["context"], session.peaks);
  if (options.screen == Screen::json)
    std::cout << documents[1].document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  documents[0].save();
  if (!options.trace.empty() && session.ranks->rank() == 0) runner.trace().save(options.trace, session.backends);
  if (!out.empty() && !to_json) replace_file(out, text.str());
  if (options.table && !out.empty()) fmt::print(stderr, "Rows: {}\n", out.string());

  if (interrupted() != 0) return 128 + interrupted();
  if (runner.any_failed()) fmt::print(stderr, "lamina_bench: some rows failed; their text says why\n");
  if (!runner.any_measured()) fmt::print(stderr, "lamina_bench: no row could run\n");
  return runner.any_measured() && !runner.any_failed() ? 0 : 1;
}

/// Refuses what several ranks do not do, and gives each its threads.
void settle_ranks(RunOptions& options, const Communicator& ranks) {
  const std::pair<const char*, bool> of_one[] = {{"--cuda_graph", options.plan.cuda_graph},
                                                 {"--noise", options.noise > 0},
                                                 {"--benchmark_min_time", options.min_time > 0},
                                                 {"--backend with several names", options.backends.names.size() > 1}};
  for (const auto& [flag, given] : of_one)
    if (given) throw UsageError(fmt::format("{} is for one process; leave it out, or start without mpirun", flag));
  if (options.backends.names.empty()) options.backends.names = {"eigen"};
  if (options.backends.threads == 0) options.backends.threads = ranks.threads();
  if (ranks.rank() != 0) options.out.clear();
}

int run_as_rank(const RunOptions& options, const MakeBackend& make, Communicator& ranks) {
  RunOptions readable = options;
  readable.net.ranks = ranks.size();
  if (ranks.size() > 1) settle_ranks(readable, ranks);
  const bool refused = options.net.onnx.size() > 1 && leave_out_refused(readable.net, options.configs.batches.front());
  Session session(readable, make);
  session.ranks = &ranks;
  const int status = readable.list ? list_rows(session, readable) : measure_rows(session, readable);
  return refused && status == 0 ? 1 : status;
}

}  // namespace

int run_rows(const RunOptions& options, const MakeBackend& make) {
  const std::vector<std::string>& backends = options.backends.names;
  return with_ranks(backends.size() == 1 ? backends[0] : "eigen",
                    [&](Communicator& ranks) { return run_as_rank(options, make, ranks); });
}

}  // namespace lamina::bench
