// The rows that a filter picks, with their file and table.

#include "run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "bench/context/results.h"
#include "bench/io/interrupt.h"
#include "bench/io/quantities.h"
#include "bench/io/result_file.h"
#include "bench/machine/energy.h"
#include "bench/rows/report/progress.h"
#include "bench/rows/report/report.h"
#include "bench/rows/report/table.h"
#include "lamina/weights.h"
#include "runner.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Row> picked(std::vector<Row> rows, const std::string& filter, const std::string& left_out) {
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(row.name);
  const std::vector<bool> chosen = pick(names, filter, left_out);
  std::vector<Row> kept;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (chosen[i]) kept.push_back(std::move(rows[i]));
  return kept;
}

int list_rows(Session& session, const RunOptions& options) {
  std::vector<Row> rows = all_rows(session, options);
  if (options.filter) rows = picked(std::move(rows), *options.filter, too_small_for(options.net));
  std::string text;
  for (const Row& row : rows) text += row.name + "\n";
  fmt::print("{}", text);
  return 0;
}

void announce(const Progress& progress, const Runner& runner, const Session& session, const RunOptions& options) {
  if (options.table)
    for (const std::string& reason : session.backends.left_out()) fmt::print(stderr, "Left out: {}\n", reason);
  const std::string& backend = runner.rows().front().group->config.backend;
  const std::size_t groups = runner.outcomes().size();
  const double seconds = progress.left_seconds();
  fmt::print(stderr, "{} measurement{}, each of one pass to warm up and {} timed{}\n", groups, groups == 1 ? "" : "s",
             passes_on(backend, options.passes),
             seconds > 0 ? fmt::format(": about {} in all", seconds_text(seconds)) : "");
}

int measure_rows(Session& session, const RunOptions& options) {
  const std::filesystem::path& out = options.out;
  if (!out.empty()) check_writable(out);

  std::vector<Row> rows =
      picked(all_rows(session, options), options.filter.value_or(default_filter(options.quick, options.net)),
             too_small_for(options.net));
  check_files_are_used(rows, options);
  if (!options.weights.empty())
    read_safetensors(options.weights);  // a file that cannot be read fails before anything is measured
  Progress progress(session.peaks, rows, options.passes);
  Runner runner(session, std::move(rows), options.passes, progress);
  announce(progress, runner, session, options);

  ResultFile file(out);
  Table table;
  Report report(runner, file, options.screen, options.table ? &table : nullptr, progress);
  Json& context = file.document["context"];
  context = start_context(session.backends);
  add_peaks(context, session.peaks);
  if (options.energy) add_energy(context, session.backends.names());
  for (const auto& [key, value] : options.context) context[key] = value;

  runner.run(report);
  progress.clear();

  end_context(context, session.peaks);
  if (options.screen == Screen::json) fmt::print("{}\n", file.document.dump(2));
  const bool flushed = std::fflush(stdout) == 0;
  if (!flushed) fmt::print(stderr, "lamina_bench: cannot write to standard output\n");
  file.save();
  if (options.table && !out.empty()) fmt::print(stderr, "Rows: {}\n", out.string());

  if (interrupted() != 0) return 128 + interrupted();
  if (runner.any_failed()) fmt::print(stderr, "lamina_bench: some rows failed; their text says why\n");
  if (!runner.any_measured()) fmt::print(stderr, "lamina_bench: no row could run\n");
  return flushed && runner.any_measured() && !runner.any_failed() ? 0 : 1;
}

}  // namespace

int run_rows(const RunOptions& options, const MakeBackend& make) {
  Session session(options, make);
  return options.list ? list_rows(session, options) : measure_rows(session, options);
}

}  // namespace lamina::bench
