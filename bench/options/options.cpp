// What the user asked of lamina_bench: the command line.

#include "options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <type_traits>
#include <utility>

#include "flags.h"
#include "lamina/error.h"
#include "support/near.h"

namespace lamina::bench {
namespace {

constexpr const char* about =
    "Times the passes of convolutional networks, per backend, as rows of Google Benchmark.\n"
    "Without a subcommand it is `run`; without a filter that is forward, backward and total of ten networks.";
constexpr const char* exits =
    "`lamina_bench SUBCOMMAND --help` has the flags.\n"
    "Exit status: 0, or 1 (a row failed, or a file could not be written), 2 (wrong use), 130 or 143 (interrupted).";
constexpr const char* names_help =
    "bench/race/versions compares versions of cuDNN, or builds of lamina_bench, by the same rows.\n\n"
    "Names of rows, which --benchmark_filter (a regular expression) picks from:\n"
    "  net/<net>/<forward|backward|total|inference>/<backend>/<f32|f64>/<layout>/batch:<n>\n"
    "  layer/<net>/<node>/<forward|backward_data|backward_params>/<backend>/<algorithm>/<f32|f64>/<layout>/batch:<n>\n"
    "  setup/<net>/<device|graph|plan|first_pass>/<backend>/<f32|f64>/<layout>/batch:<n>\n"
    "After these, where it is not the default: /image:<n> /instruction_set:<name> /width_divisor:<n> /graph\n"
    "/recompute /unfused /softmax:<0|1> /input_gradient:<0|1> /accumulate:<0|1> /deterministic /max_error:<e>\n"
    "/workspace_limit:<bytes> /measured /choices";
constexpr const char* guaranteed = "Only those that guarantee it, relative to the sum of |terms|";
constexpr const char* measured = "Only those that are measured to hold it, relative to the sum of |terms|";

/// What flags of former versions are now.
struct Former {
  const char* flag;
  const char* now;
};
constexpr std::array former = {Former{"--ledger", "lamina_bench ledger NET"},
                               Former{"--frontier", "lamina_bench frontier NET"},
                               Former{"--memory", "lamina_bench memory NET"},
                               Former{"--describe", "lamina_bench describe NET"},
                               Former{"--networks", "lamina_bench networks"},
                               Former{"--devices", "lamina_bench devices"},
                               Former{"--peaks", "lamina_bench devices"},
                               Former{"--cudnn_engines", "lamina_bench engines NET"},
                               Former{"--choices_out", "lamina_bench frontier NET --choices_out=FILE"},
                               Former{"--programs", "bench/race/versions --programs FILE,FILE"},
                               Former{"--rounds", "bench/race/versions --rounds N"}};

/// "key=value" as an entry; throws CLI11's error.
void add_context(std::map<std::string, std::string>& context, const std::vector<std::string>& pairs) {
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos)
      throw CLI::ValidationError("--benchmark_context", fmt::format("takes key=value pairs, not \"{}\"", pair));
    context[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
}

/// The subcommands, and where their flags go to.
struct CommandLine {
  CommandLine();

  Command command{};
  CLI::App app{about, "lamina_bench"};

 private:
  template <class T>
  CLI::App& add(const char* name, const char* text, T& options);
  void add_run();
  /// Throws UsageError for what the subcommand does not take.
  void check_extras(const CLI::App& subcommand) const;

  RunOptions run_{};
  LedgerOptions ledger_{};
  FrontierOptions frontier_{};
  MemoryOptions memory_{};
  DescribeOptions describe_{};
  NetworksOptions networks_{};
  DevicesOptions devices_{};
  EnginesOptions engines_{};
  ServeOptions serve_{};
};

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  return flags;
}

void CommandLine::check_extras(const CLI::App& subcommand) const {
  if (subcommand.remaining().empty()) return;
  const std::string word = subcommand.remaining().front(), flag = word.substr(0, word.find('='));
  const auto known = std::find_if(former.begin(), former.end(), [&](const Former& each) { return flag == each.flag; });
  if (known != former.end()) throw UsageError(fmt::format("{} is now: {}", flag, known->now));
  std::vector<std::string> others;
  for (const CLI::App* other : app.get_subcommands({}))
    if (const auto flags = flags_of(*other); std::find(flags.begin(), flags.end(), flag) != flags.end())
      others.push_back(other->get_name());
  throw UsageError(fmt::format(
      "{} takes no {}: {}; see lamina_bench {} --help", subcommand.get_name(), flag,
      others.empty() ? near_names(flag, flags_of(subcommand)) : fmt::format("{} would", fmt::join(others, ", ")),
      subcommand.get_name()));
}

template <class T>
CLI::App& CommandLine::add(const char* name, const char* text, T& options) {
  CLI::App& subcommand = *app.add_subcommand(name, text);
  if constexpr (requires { options.networks; }) add_networks(subcommand, options.networks);
  if constexpr (requires { options.format; }) add_format(subcommand, options.format);
  subcommand.allow_extras()->callback([this, &subcommand, &options] {
    check_extras(subcommand);
    if constexpr (std::is_base_of_v<Settings, T>) check(options);
    if constexpr (requires { options.networks; }) check_networks(options.networks);
    command = options;
  });
  return subcommand;
}

void CommandLine::add_run() {
  CLI::App& run = add("run", "Time rows of networks, layers and set-up (what is done without a subcommand)", run_);
  run.footer(names_help);
  constexpr const char* rows = "Rows";
  run.add_flag("--benchmark_list_tests", run_.list, "Print the names of the rows")->group(rows);
  auto* filter =
      run.add_option("--benchmark_filter", run_.filter, "Only rows whose names hold a match of this expression");
  filter->group(rows);
  run.add_option("--benchmark_out", run_.out, "File for the rows as JSON, every sample in it")->group(rows);
  run.add_option("--benchmark_out_format", "json, the only one")->check(CLI::IsMember({"json"}))->group(rows);
  add_screen(run, run_.screen);
  run.add_option_function<std::vector<std::string>>(
         "--benchmark_context", [this](const auto& pairs) { add_context(run_.context, pairs); },
         "Further facts for the JSON context")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE[,...]")
      ->group(rows);
  auto* table =
      run.add_flag("--table", run_.table, "Print the table of the published form, and write it and the rows to files");
  table->group(rows);
  run.add_option("--results", run_.results, "Folder for the files of --table")->needs(table)->group(rows);
  run.add_flag("--quick", run_.quick, "resnet18, resnet50 and alexnet only")
      ->needs(table)
      ->excludes(filter)
      ->group(rows);
  auto* full = run.add_flag("--full", run_.full, "10 timed passes everywhere")->needs(table);
  full->group(rows);
  run.add_flag("--published", run_.published, "Published times of the same networks as further rows of the table")
      ->needs(table)
      ->group(rows);

  add_plan(run, run_, guaranteed);
  add_choices(run, run_);
  add_passes(run, run_)->excludes(full);
  constexpr const char* what = "What is timed";
  run.add_flag("--cuda_graph", run_.cuda_graph,
               "Rows net/...: forward and backward each recorded as a CUDA graph, and its launch timed")
      ->group(what);
  run.add_option("--weights", run_.weights, "A safetensors file to load; default: random numbers")
      ->check(CLI::ExistingFile)
      ->group(what);
  run.add_flag("--long_run", run_.long_run,
               "Begin even if it will take hours on cuda-host, which is for tests and not for timing")
      ->group(what);

  run.parse_complete_callback([this] {
    if (run_.full) run_.passes = 10;
  });
}

CommandLine::CommandLine() {
  app.footer(exits);
  app.require_subcommand(1);
  add_run();

  CLI::App& ledger = add("ledger", "Time per layer and pass, biggest first, and their sum against the whole", ledger_);
  add_plan(ledger, ledger_, guaranteed);
  add_choices(ledger, ledger_);
  add_passes(ledger, ledger_);

  CLI::App& frontier = add("frontier",
                           "Per layer and pass, the algorithms that none beats in time, workspace and error, and the "
                           "fastest network of them under the limits",
                           frontier_);
  add_plan(frontier, frontier_, measured);
  add_passes(frontier, frontier_);
  frontier.add_option("--choices_out", frontier_.choices_out, "File that the picks are added to, for --choices")
      ->type_name("FILE");

  CLI::App& memory =
      add("memory", "What training and inference take at a batch, by kind; the largest batch within --memory_limit",
          memory_);
  add_plan(memory, memory_, guaranteed);
  add_choices(memory, memory_);

  CLI::App& describe =
      add("describe", "Layers: name, op, output, parameters, multiply-adds, bytes; per image", describe_);
  add_size(describe, describe_);
  add_dtype(describe, describe_);

  add("networks", "The networks there are: names, images, sources", networks_);

  CLI::App& devices =
      add("devices", "Processor and GPUs: what they are, and what they were measured to reach", devices_);
  add_processor(devices, devices_);
  add_cudnn(devices, devices_);

  CLI::App& engines =
      add("engines", "Engines that cuDNN would choose per convolution and pass on --device, which need not be there",
          engines_);
  engines.add_option("--device", engines_.device, "a100, h200, or a JSON file of properties")
      ->type_name("NAME|FILE")
      ->required();
  add_size(engines, engines_);
  add_batch(engines, engines_);
  add_cudnn(engines, engines_);
  engines.add_option("--benchmark_out", engines_.out, "File for the answers as JSON");
  add_screen(engines, engines_.screen);

  add("serve", "One pass at a time for bench/race/compare, by requests on standard input", serve_)
      .add_option("config", serve_.config, "JSON, as bench/race/serve/serve.h has it")
      ->required();
}

/// The words in the order that CLI11 wants, last first; `run` where no subcommand is named. Throws UsageError for a
/// word that is none.
std::vector<std::string> words_of(int argc, const char* const* argv, const CLI::App& app) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool help = !words.empty() && (words[0] == "--help" || words[0] == "-h");
  if (words.empty() || (words[0].starts_with('-') && !help)) words.insert(words.begin(), "run");
  std::vector<std::string> known;
  for (const CLI::App* each : app.get_subcommands({})) known.push_back(each->get_name());
  if (!help && std::find(known.begin(), known.end(), words[0]) == known.end())
    throw UsageError(fmt::format("no subcommand \"{}\": {}; see --help", words[0], near_names(words[0], known)));
  std::reverse(words.begin(), words.end());
  return words;
}

}  // namespace

Parsed parse_options(int argc, const char* const* argv) {
  Parsed parsed;
  CommandLine line;
  try {
    line.app.parse(words_of(argc, argv, line.app));
    parsed.command = std::move(line.command);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", line.app.help());
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
