// What the user asked of lamina_bench: the command line.

#include "options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <limits>

#include "io/quantities.h"
#include "lamina/error.h"
#include "option_rules.h"
#include "support/near.h"

namespace lamina::bench {
namespace {

constexpr const char* about =
    "Times the passes of convolutional networks, per backend, as rows of Google Benchmark.\n"
    "Without a filter: forward, backward and total of the ten networks of cnn-benchmarks.";
constexpr const char* names_help =
    "Names of rows, which --benchmark_filter (a regular expression) picks from:\n"
    "  net/<net>/<forward|backward|total|inference>/<backend>/<f32|f64>/<layout>/batch:<n>\n"
    "  layer/<net>/<node>/<forward|backward_data|backward_params>/<backend>/<algorithm>/<f32|f64>/<layout>/batch:<n>\n"
    "  setup/<net>/<device|graph|plan|first_pass>/<backend>/<f32|f64>/<layout>/batch:<n>\n"
    "Behind these, where it is not the default: /image:<n> /instruction_set:<name> /width_divisor:<n> /graph\n"
    "/recompute /unfused /softmax:<0|1> /input_gradient:<0|1> /accumulate:<0|1> /deterministic /max_error:<e>\n"
    "/workspace_limit:<bytes> /measured /choices\n\n"
    "Exit status: 0, or 1 (a row failed, or a file could not be written), 2 (wrong use), 130 or 143 (interrupted).";

/// Text of a flag until it is read: CLI11 knows nothing of lamina's types.
struct Raw {
  std::vector<std::string> describe, memory, ledger, frontier, engines;
  std::vector<std::string> context;
  std::string filter, out_format = "json", memory_limit, workspace_limit, math = "strict";
  bool list = false, networks = false, devices = false, unfused = false, softmax = false, input_gradient = false,
       accumulate = false;
};

/// Takes the names of an enumeration's values; help shows them as "csv|text".
template <class T>
CLI::Validator names_of(const std::map<std::string, T>& known) {
  std::vector<std::string> names;
  for (const auto& [name, value] : known) names.push_back(name);
  const auto to_value = [known, names](std::string& text) {
    const auto found = known.find(CLI::detail::to_lower(text));
    if (found == known.end()) return fmt::format("there is no \"{}\", but {}", text, fmt::join(names, ", "));
    text = fmt::format("{}", static_cast<int>(found->second));
    return std::string();
  };
  return CLI::Validator(to_value, fmt::format("{}", fmt::join(names, "|")));
}

/// Takes the whole numbers from 1.
CLI::Validator counts() {
  static constexpr int most = std::numeric_limits<int>::max();
  return CLI::Validator(
      [](std::string& text) {
        int value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value >= 1) return std::string();
        return fmt::format("takes whole numbers from 1 to {}, not \"{}\"", int{most}, text);
      },
      fmt::format("1 to {}", int{most}));
}

/// Takes numbers above 0.
CLI::Validator above_zero() {
  return CLI::Validator(
      [](std::string& text) {
        double value = 0;
        return CLI::detail::lexical_cast(text, value) && value > 0
                   ? std::string()
                   : fmt::format("takes numbers above 0, not \"{}\"", text);
      },
      "above 0");
}

void add_tasks(CLI::App& app, Raw& raw, BenchOptions& options) {
  const auto nets = [&](const char* flag, std::vector<std::string>& to, const char* text) {
    app.add_option(flag, to, text)->delimiter(',')->type_name("NET[,NET]")->group("Instead of timing rows");
  };
  app.add_flag("--benchmark_list_tests", raw.list, "Print the names of the rows")->group("Instead of timing rows");
  nets("--describe", raw.describe, "Layer table: name, op, output, parameters, multiply-adds, bytes; per image");
  app.add_flag("--networks", raw.networks, "Print the networks there are: names, images, sources")
      ->group("Instead of timing rows");
  nets("--memory", raw.memory,
       "What training and inference take at a batch, by kind; the largest batch within a limit");
  nets("--ledger", raw.ledger, "Time per layer and pass, biggest first, and their sum against the whole");
  app.add_flag("--devices,--peaks", raw.devices,
               "Processor and GPUs: what they are, and what they were measured to reach")
      ->group("Instead of timing rows");
  nets("--frontier", raw.frontier,
       "Per layer and pass, the algorithms that none beats in time, workspace and error, and the fastest network of "
       "them under the limits");
  app.add_option("--choices_out", options.choices_out, "With --frontier: file that its fastest choices are added to")
      ->group("Instead of timing rows");
  nets("--cudnn_engines", raw.engines,
       "Engines that cuDNN would choose per convolution and pass on --device, which need not be there");
  app.add_option("--device", options.device, "Of --cudnn_engines: a100, h200, or a JSON file of properties")
      ->type_name("NAME|FILE")
      ->group("Instead of timing rows");
  app.add_option("--format", options.format, "Of these tables: text or csv")
      ->type_name("NAME")
      ->transform(names_of<Format>({{"text", Format::text}, {"csv", Format::csv}}))
      ->group("Instead of timing rows");
}

void add_rows(CLI::App& app, Raw& raw, BenchOptions& options) {
  app.add_option("--benchmark_filter", raw.filter, "Only rows whose names hold a match of this expression")
      ->group("Rows");
  app.add_option("--benchmark_out", options.out, "File for the rows as JSON, every sample in it")->group("Rows");
  app.add_option("--benchmark_out_format", raw.out_format, "json, the only one")
      ->check(CLI::IsMember({"json"}))
      ->group("Rows");
  app.add_option("--benchmark_format", options.screen, "On standard output: console or json")
      ->type_name("NAME")
      ->transform(names_of<Screen>({{"console", Screen::console}, {"json", Screen::json}}))
      ->group("Rows");
  app.add_option("--benchmark_context", raw.context, "Further facts for the JSON context")
      ->delimiter(',')
      ->type_name("KEY=VALUE[,...]")
      ->group("Rows");
  app.add_flag("--table", options.table, "Print the table of the published form, and write it and the rows to files")
      ->group("Rows");
  app.add_option("--results", options.results, "Folder for the files of --table")->capture_default_str()->group("Rows");
  auto* quick = app.add_flag("--quick", options.quick, "With --table: resnet18, resnet50 and alexnet only");
  auto* full = app.add_flag("--full", options.full, "With --table: 10 timed passes everywhere");
  quick->group("Rows");
  full->group("Rows");
  app.add_flag("--published", options.published, "With --table: published times of the same networks as further rows")
      ->group("Rows");
}

void add_protocol(CLI::App& app, Raw& raw, BenchOptions& options) {
  constexpr const char* group = "What is timed";
  app.add_option("--backend", options.backends, "Default: every one that can run here (cuda-host only by name)")
      ->delimiter(',')
      ->group(group);
  app.add_option("--cudnn", options.cudnn, "Directory of the cuDNN to load; bench/race/versions compares several")
      ->delimiter(',')
      ->type_name("DIR")
      ->group(group);
  app.add_option("--batch", options.batches, "Images per pass")->delimiter(',')->check(counts())->group(group);
  app.add_option(
         "--image", options.image,
         "Rows and columns of the input, from the smallest on that --networks tells; default: the network's own")
      ->check(counts())
      ->group(group);
  app.add_option("--width_divisor", options.width_divisor, "Divides every hidden width: narrow networks for trials")
      ->check(counts())
      ->group(group);
  app.add_option("--passes,--benchmark_repetitions", options.passes,
                 "Timed passes per row, after one to warm up; default: 10 on a GPU, 3 on a processor")
      ->check(counts())
      ->group(group);
  app.add_flag("--long_run", options.long_run,
               "Begin even if it will take hours on cuda-host, which is for tests and not for timing")
      ->group(group);
  app.add_option("--threads", options.threads, "Of a processor's backend; default: all")->check(counts())->group(group);
  app.add_option("--instruction_set", options.instruction_set,
                 "Of eigen: generic, x86-64-v2, x86-64-v3, x86-64-v4; default: the fastest here")
      ->group(group);
  app.add_option("--dtype", options.dtypes, "f32, f64")
      ->delimiter(',')
      ->type_name("NAME")
      ->transform(names_of<DType>({{"f32", DType::f32}, {"f64", DType::f64}}))
      ->group(group);
  app.add_option("--layout", options.layouts, "nchw, nhwc")
      ->delimiter(',')
      ->type_name("NAME")
      ->transform(names_of<Layout>({{"nchw", Layout::nchw}, {"nhwc", Layout::nhwc}}))
      ->group(group);
  app.add_option("--keep", options.keep, "Until backward: all, or cheap (what is cheap to make again is dropped)")
      ->type_name("NAME")
      ->transform(names_of<Keep>({{"all", Keep::all}, {"cheap", Keep::cheap}}))
      ->group(group);
  app.add_flag("--unfused", raw.unfused, "Every op by itself")->group(group);
  app.add_flag("--cuda_graph", options.cuda_graph,
               "Rows net/...: forward and backward each recorded as a CUDA graph, and its launch timed")
      ->group(group);
  app.add_flag("--softmax,!--no_softmax", raw.softmax, "End in a softmax; default: as published")->group(group);
  app.add_flag("--input_gradient,!--no_input_gradient", raw.input_gradient,
               "Compute the image's gradient; default: as published")
      ->group(group);
  app.add_flag("--accumulate,!--no_accumulate", raw.accumulate, "Add to parameter gradients; default: as published")
      ->group(group);
  app.add_option("--memory_limit", raw.memory_limit, "Beyond it a row is out of memory: 4GiB, 500MB")->group(group);
  app.add_option("--math", raw.math, "Of products: strict, tf32 or half")
      ->check(CLI::IsMember({"strict", "tf32", "half"}))
      ->capture_default_str()
      ->group(group);
  app.add_flag("--deterministic", options.choice.deterministic, "Only algorithms with the same bits on every run")
      ->group(group);
  app.add_option("--max_error", options.choice.max_error,
                 "Only algorithms that guarantee it, relative to the sum of |terms|; of --frontier: that are measured "
                 "to hold it")
      ->check(above_zero())
      ->group(group);
  app.add_option("--workspace_limit", raw.workspace_limit, "Of one call, 0 or as 64MiB; default: 1GiB")->group(group);
  app.add_flag("--measure", options.choice.measure,
               "Of whole networks: algorithms by timing them when a plan is made, not by rule")
      ->group(group);
  app.add_option("--choice_cache", options.choice_cache,
                 "File that measured choices are kept in, and taken from: the instruction set of eigen and, with "
                 "--measure, algorithms")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--choices", options.choices, "A file that --choices_out wrote: algorithms by layer")
      ->check(CLI::ExistingFile)
      ->group(group);
  app.add_option("--weights", options.weights, "A safetensors file to load; default: random numbers")
      ->check(CLI::ExistingFile)
      ->group(group);
}

/// Throws UsageError, naming the flag.
std::size_t bytes_of(const char* flag, const std::string& text) {
  try {
    return parse_bytes(text);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", flag, error.what()));
  }
}

/// Fills what CLI11 could not. Throws UsageError.
void finish(const CLI::App& app, const Raw& raw, BenchOptions& options) {
  const auto given = [&](const char* flag) { return app.count(flag) > 0; };
  if (raw.list) options.task = Task::list;
  if (raw.networks) options.task = Task::networks;
  if (raw.devices) options.task = Task::devices;
  const auto take = [&](const char* flag, Task task, const std::vector<std::string>& networks) {
    if (!given(flag)) return;
    options.task = task;
    options.networks = networks;
  };
  take("--describe", Task::describe, raw.describe);
  take("--memory", Task::memory, raw.memory);
  take("--ledger", Task::ledger, raw.ledger);
  take("--frontier", Task::frontier, raw.frontier);
  take("--cudnn_engines", Task::engines, raw.engines);
  check_flags(given, options);
  if (options.full) options.passes = 10;

  if (given("--benchmark_filter")) options.filter = raw.filter;
  options.fuse = !raw.unfused;
  if (given("--softmax")) options.softmax = raw.softmax;
  if (given("--input_gradient")) options.input_gradient = raw.input_gradient;
  if (given("--accumulate")) options.accumulate = raw.accumulate;
  if (given("--memory_limit")) options.memory_limit = bytes_of("--memory_limit", raw.memory_limit);
  for (const Math math : {Math::strict, Math::tf32})
    if (to_string(math) == raw.math) options.choice.math = math;
  if (given("--workspace_limit"))
    options.choice.workspace_limit =
        raw.workspace_limit == "0" ? 0 : bytes_of("--workspace_limit", raw.workspace_limit);
  for (const std::string& pair : raw.context) {
    const std::size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos)
      throw UsageError(fmt::format("--benchmark_context takes key=value pairs, not \"{}\"", pair));
    options.context[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
}

/// What to say of an argument that no flag takes.
std::string unexpected(const CLI::App& app, std::string argument) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  argument = argument.substr(0, argument.find('='));
  return fmt::format("no flag \"{}\": {}; see --help", argument, near_names(argument, known));
}

}  // namespace

Parsed parse_options(int argc, const char* const* argv) {
  Parsed parsed;
  Raw raw;
  CLI::App app(about, "lamina_bench");
  app.footer(names_help);
  app.allow_extras();
  add_tasks(app, raw, parsed.options);
  add_rows(app, raw, parsed.options);
  add_protocol(app, raw, parsed.options);
  try {
    app.parse(argc, const_cast<char**>(argv));  // NOLINT: older CLI11 takes pointers that it does not write to
    if (const auto rest = app.remaining(); !rest.empty()) throw UsageError(unexpected(app, rest.front()));
    finish(app, raw, parsed.options);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    parsed.exit_status = 0;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "lamina_bench: {}; see --help\n", error.what());
    parsed.exit_status = 2;
  } catch (const UsageError& error) {
    fmt::print(stderr, "lamina_bench: {}\n", error.what());
    parsed.exit_status = 2;
  }
  return parsed;
}

}  // namespace lamina::bench
