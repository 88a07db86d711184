// The subcommand `run`: its flags, and what it does.

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/io/interrupt.h"
#include "bench/options/flags.h"
#include "bench/rows/run.h"
#include "commands.h"

namespace lamina::bench {
namespace {

constexpr const char* names_help =
    "bench/race/versions compares versions of cuDNN, or builds of lamina_bench, by the same rows.\n\n"
    "Names of rows, which --benchmark_filter (a regular expression) picks from:\n"
    "  net/<net>/<forward|backward|total|inference>/<backend>/<f32|f64>/<layout>/batch:<n>\n"
    "  layer/<net>/<node>/<forward|backward_data|backward_params>/<backend>/<algorithm>/<f32|f64>/<layout>/batch:<n>\n"
    "  setup/<net>/<device|graph|plan|first_pass>/<backend>/<f32|f64>/<layout>/batch:<n>\n"
    "  train/<workload>/epoch/<backend>/<f32|f64>/<layout>/batch:<n>\n"
    "After these, where it is not the default: /image:<n> /instruction_set:<name> /width_divisor:<n>\n"
    "/onnx_extents:<name=n,...> /onnx_output:<name> /graph /recompute /unfused /softmax:<0|1> /input_gradient:<0|1>\n"
    "/accumulate:<0|1> /deterministic /max_error:<e> /workspace_limit:<bytes> /measured /choices /synthetic:<share>";

/// "key=value" as an entry; throws CLI11's error.
void add_context(std::map<std::string, std::string>& context, const std::vector<std::string>& pairs) {
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos)
      throw CLI::ValidationError("--benchmark_context", fmt::format("takes key=value pairs, not \"{}\"", pair));
    context[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
}

}  // namespace

Action run_command(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  app.footer(names_help);
  constexpr const char* rows = "Rows";
  app.add_flag("--benchmark_list_tests", options->list, "Print the names of the rows")->group(rows);
  auto* filter =
      app.add_option("--benchmark_filter", options->filter, "Only rows whose names hold a match of this expression");
  filter->group(rows);
  app.add_option("--benchmark_out", options->out, "File for the rows as JSON, every sample in it")->group(rows);
  app.add_option("--benchmark_out_format", "json, the only one")->check(CLI::IsMember({"json"}))->group(rows);
  add_screen(app, options->screen);
  app.add_option_function<std::vector<std::string>>(
         "--benchmark_context", [options](const auto& pairs) { add_context(options->context, pairs); },
         "Further facts for the JSON context")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE[,...]")
      ->group(rows);
  auto* table = app.add_flag("--table", options->table, "Print the table of the published form");
  table->group(rows);
  app.add_flag("--quick", options->quick, "resnet18, resnet50 and alexnet only")
      ->needs(table)
      ->excludes(filter)
      ->group(rows);

  add_plan(app, *options);
  add_choices(app, options->plan);
  add_passes(app, options->passes);
  constexpr const char* what = "What is timed";
  app.add_flag("--cuda_graph", options->cuda_graph,
               "Rows net/...: forward and backward each recorded as a CUDA graph, and its launch timed")
      ->group(what);
  app.add_option("--data", options->train_data, "Rows train/...: folder of the real files; default: synthetic sets")
      ->check(CLI::ExistingDirectory)
      ->group(what);
  app.add_option("--share", options->train_share, "Rows train/...: of the synthetic samples; default: 0.1")
      ->check(CLI::Range(1e-6, 1.0, "above 0, at most 1"))
      ->group(what);
  app.add_flag("--energy", options->energy, "Rows net/...: joules of a pass, over a window of a second or more")
      ->group(what);
  app.add_option("--weights", options->weights, "A safetensors file to load; default: random numbers")
      ->check(CLI::ExistingFile)
      ->group(what);

  return [options](const MakeBackend& make) {
    if (!options->list) catch_interrupts();
    check(*options);
    return run_rows(*options, make);
  };
}

}  // namespace lamina::bench
