// The subcommand `run`: its flags and its action.

#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/io/interrupt.h"
#include "bench/options/flags.h"
#include "bench/rows/rows.h"
#include "commands.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

constexpr const char* names_help =
    "bench/race/versions compares versions of cuDNN, or builds of lamina_bench, by the same rows.\n\n"
    "Names of rows, which --benchmark_filter (a regular expression) picks from:\n"
    "  net/<net>/<forward|backward|total|inference>/<backend>/<type>/<layout>/batch:<n>\n"
    "  layer/<net>/<node>/<forward|backward_data|backward_params>/<backend>/<algorithm>/<type>/<layout>/batch:<n>\n"
    "Settings that are not the defaults follow, with a : before the value, if there is a value:\n {}\n\n"
    "Other flags of Google Benchmark work, too: --benchmark_report_aggregates_only,\n"
    "--benchmark_display_aggregates_only, --benchmark_enable_random_interleaving, --benchmark_counters_tabular,\n"
    "--benchmark_color, --benchmark_perf_counters, --benchmark_context=KEY=VALUE,..., --v, and, if its version has\n"
    "them, --benchmark_min_warmup_time and --benchmark_dry_run. As in Google Benchmark, variables of the environment\n"
    "give values for absent flags: BENCHMARK_FILTER, BENCHMARK_OUT, ...";

/// Lets the library read its own flags. Throws UsageError for flags that neither `options` nor the library knows.
void give_to_library(const RunOptions& options, const CLI::App& app) {
  static char program[] = "lamina_bench";  // the library keeps the pointer
  // Without --benchmark_out the library writes no file report. These flags override the library's environment
  // variables, whose values are in the options already.
  std::vector<std::string> words = {
      "--benchmark_out=/dev/null", "--benchmark_out_format=json", "--benchmark_list_tests=false",
      options.screen == Screen::csv ? "--benchmark_format=csv" : "--benchmark_format=console"};
  if (!options.time_unit.empty()) words.push_back("--benchmark_time_unit=" + options.time_unit);
  for (const std::string& word : app.remaining()) words.push_back(word);
  std::vector<char*> pointers = {program};
  for (std::string& word : words) pointers.push_back(word.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data(),
                        [] { throw UsageError("a flag of Google Benchmark has a bad value"); });
  if (count < 2) return;
  const std::string unknown = pointers[1];
  throw UsageError(fmt::format("{} is unknown to lamina_bench and to Google Benchmark ({})", unknown,
                               near_names(unknown.substr(0, unknown.find('=')), flags_of(app))));
}

}  // namespace

Action run_command(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  app.footer(fmt::format(fmt::runtime(names_help), key_help()));
  auto* networks = app.add_option("networks", options->networks, "Only rows of these networks");
  networks->delimiter(',')->type_name("[NET ...]");
  app.option_defaults()->group("Rows");
  app.add_flag("--benchmark_list_tests", options->list, "Print the names of the rows");
  auto* filter =
      app.add_option("--benchmark_filter", options->filter,
                     "Only rows whose names match this expression in part; after a -: only rows that do not match");
  app.add_option("--benchmark_out", options->out, "File for the rows, every sample in it");
  const Names<Screen> forms = {{"console", Screen::console}, {"json", Screen::json}, {"csv", Screen::csv}};
  add_choice(app, "--benchmark_out_format", options->out_format, forms, "Form of the file; default: json");
  add_choice(app, "--benchmark_format", options->screen, forms, "Form of standard output; default: console");
  app.add_option("--benchmark_time_unit", options->time_unit,
                 "Unit of all times; default: us of layers, ms of networks")
      ->check(CLI::IsMember({"ns", "us", "ms", "s"}));
  app.add_option("--trace", options->trace, "Trace file of passes and of sums over ranks, for ui.perfetto.dev");
  auto* table = app.add_flag("--table", options->table, "Print the table of the published form");
  app.add_flag("--quick", options->quick, "resnet18, resnet50 and alexnet only")
      ->needs(table)
      ->excludes(filter)
      ->excludes(networks);

  add_flags(app, network_flags | error_flags | measure_flags | row_flags, *options);
  app.option_defaults()->group("What is timed");
  auto* passes = add_passes(app, options->passes);
  add_share(
      app, "--noise", [options](double share) { options->noise = share; },
      "Run passes until half of the median's 95 % interval is below this share of the median")
      ->excludes(passes);
  app.add_option("--benchmark_min_time", options->min_time,
                 "Least seconds of a run, which repeats the pass; default: one pass. With --noise: seconds after which "
                 "no further pass begins; default: 60")
      ->check(above_zero());

  return [options, &app](const MakeBackend& make) {
    if (!options->list) catch_interrupts();
    check_once("the list of networks", options->networks);
    check(*options);
    give_to_library(*options, app);
    const bool all = options->list || options->filter || !options->net.onnx.empty();
    if (!all && options->networks.empty()) options->networks = default_networks(options->quick);
    return run_rows(*options, make);
  };
}

}  // namespace lamina::bench
