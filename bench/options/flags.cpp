// The flags that several subcommands share.

#include "flags.h"

#include <cstdlib>

#include "bench/io/result_file.h"
#include "lamina/tuning.h"

namespace lamina::bench {
namespace {

CLI::Range counts() { return {1, std::numeric_limits<int>::max(), "from 1"}; }

// The table uses these functions: arguments `add` of flag(), and functions that make such arguments, as in flags.h.

template <class... Checks>
auto list(const char* text, Checks... checks) {
  return [=](CLI::App& app, const std::string& name, auto& to) {
    auto* option = add_list(app, name, to, text);
    (option->check(checks), ...);
    return option;
  };
}

/// An option that is allowed only together with --onnx.
template <class Add>
auto of_onnx(Add add) {
  return [=](CLI::App& app, const std::string& name, auto& to) { return add(app, name, to)->needs("--onnx"); };
}

CLI::Option* inference(CLI::App& app, const std::string& name, Mode& to) {
  return app.add_flag_callback(
      name, [&to] { to = Mode::inference; }, "Inference, not training; some networks can only infer");
}

auto either(const char* text) {
  return [=](CLI::App& app, const std::string& name, std::optional<bool>& to) {
    const auto read = [name, &to](std::int64_t count) {
      if (count == 0) throw CLI::ValidationError(name, "exclude each other; give one");
      to = count > 0;
    };
    return app.add_flag_function(name, read, text);
  };
}

template <class T>
auto several_of(const char* text, Names<T> known) {
  return [=](CLI::App& app, const std::string& name, std::vector<T>& to) {
    return choose<T>(add_list(app, name, to, text), known);
  };
}

/// A number of bytes: "4GiB", "1.5GiB", "500MB", "4096".
auto bytes(std::size_t least, const char* text) {
  return [=](CLI::App& app, const std::string& name, std::size_t& to) {
    const auto read = [name, &to, least](const std::string& word) {
      static const std::map<std::string, double> units = {
          {"", 1},      {"b", 1},        {"kb", 1e3},     {"mb", 1e6},     {"gb", 1e9},
          {"tb", 1e12}, {"kib", 0x1p10}, {"mib", 0x1p20}, {"gib", 0x1p30}, {"tib", 0x1p40}};
      char* unit = nullptr;
      const double number = std::strtod(word.c_str(), &unit);
      const bool has_number = unit != word.c_str();
      while (*unit == ' ') ++unit;
      const auto known = units.find(CLI::detail::to_lower(unit));
      const double bytes = known != units.end() && has_number ? number * known->second : -1;
      constexpr double most = 0x1p62;
      if (!(bytes >= static_cast<double>(least) && bytes <= most))
        throw CLI::ValidationError(name, fmt::format("takes bytes, as 4GiB, 1.5GiB or 500MB, not \"{}\"", word));
      to = static_cast<std::size_t>(bytes);
    };
    return app.add_option_function<std::string>(name, read, text)->type_name("BYTES");
  };
}

/// The table of the flags for planning. Names of rows show the values that differ from the defaults, in this order.
const std::vector<Flag<PlanningSettings>>& planning_flags() {
  const auto flag = [](auto... row) { return bench::flag<PlanningSettings>(row...); };
  static const std::vector<Flag<PlanningSettings>> table = {
      flag("--onnx", onnx_flags, LAMINA_AT(net.onnx), add_onnx_files),
      flag("--backend", backend_flags, LAMINA_AT(backends.names),
           list("Backends; default: every one that can run here (cuda-host and cudnn-graph only by name)"),
           Keys::in_place),
      flag("--batch", batch_flags, LAMINA_AT(configs.batches), list("Images per pass; default: 16", counts()),
           Keys::in_place),
      flag("--dtype", dtype_flags, LAMINA_AT(configs.dtypes), several_of("Element types; default: f32", dtypes),
           Keys::in_place),
      flag("--layout", layout_flags, LAMINA_AT(configs.layouts),
           several_of("Layouts of tensors; default: nchw", layouts), Keys::in_place),
      flag("--image", size_flags, LAMINA_AT(net.image),
           value("Rows and columns of the input; `lamina_bench networks` prints the smallest; default: the network's "
                 "own",
                 counts()),
           Keys::all),
      flag("--threads", processor_flags, LAMINA_AT(backends.threads),
           value("Threads of the processor's backends; default: 0, all", CLI::Range(0, most_backend_threads))),
      flag("--instruction_set", processor_flags, LAMINA_AT(backends.instruction_set),
           value("Instruction set of eigen: generic, x86-64-v3, x86-64-v4, x86-64-v4-bf16, x86-64-v4-amx; default: the "
                 "widest"),
           Keys::eigen),
      flag("--cudnn", cudnn_flags, LAMINA_AT(backends.cudnn),
           value("Directory of the cuDNN to load; bench/race/versions compares several")),
      flag("--plans", row_flags, LAMINA_AT(backends.plans),
           value("Folder that plans of cudnn-graph are kept in, and loaded from")),
      flag("--width_divisor", size_flags, LAMINA_AT(net.width_divisor),
           value("Divides every hidden width: narrow networks for trials", counts()), Keys::all),
      flag("--ranks", 0U, LAMINA_AT(net.ranks), value(""),
           Keys::all),  // no subcommand takes it: mpirun sets the number
      flag("--onnx_extents", onnx_flags, LAMINA_AT(net.onnx_settings.extents), add_onnx_extents, Keys::files),
      flag("--onnx_output", onnx_flags, LAMINA_AT(net.onnx_settings.output),
           of_onnx(value("Output to use, for files that have several")), Keys::files),
      flag("--all_refusals", onnx_flags, LAMINA_AT(net.onnx_settings.all_refusals),
           of_onnx(on("Name every node that cannot be read, not only the first"))),
      flag("--cuda_graph", row_flags, LAMINA_AT(plan.cuda_graph),
           on("Rows net/...: record forward and backward as CUDA graphs, and time their launches"), Keys::net_rows,
           "graph"),
      flag("--cold", row_flags, LAMINA_AT(plan.cold), on("Rows layer/...: each pass begins with empty caches"),
           Keys::layers),
      flag("--keep", plan_flags, LAMINA_AT(plan.options.keep),
           one_of<Keep>("Values kept for backward: all, or cheap (those that are cheap to compute again are dropped)",
                        {{"all", Keep::all}, {"cheap", Keep::cheap}}),
           Keys::trainings, "recompute"),
      flag("!--unfused", plan_flags, LAMINA_AT(plan.options.fuse), on("No fusion: every op runs alone"), Keys::networks,
           "unfused"),
      flag("--softmax,!--no_softmax", size_flags, LAMINA_AT(net.softmax),
           either("End the network in a softmax; default: as published"), Keys::networks),
      flag("--input_gradient,!--no_input_gradient", plan_flags, LAMINA_AT(plan.input_gradient),
           either("Compute the image's gradient; default: as published"), Keys::trainings),
      flag("--accumulate,!--no_accumulate", plan_flags, LAMINA_AT(plan.accumulate),
           either("Add to parameter gradients; default: as published"), Keys::trainings),
      flag("--memory_limit", limit_flags, LAMINA_AT(backends.memory_limit),
           bytes(1, "Most memory of a backend, as 4GiB or 500MB: a plan beyond it is out of memory")),
      flag("--math", limit_flags, LAMINA_AT(plan.options.choice.math),
           one_of<Math>("Math of products; default: strict", {{"strict", Math::strict}, {"tf32", Math::tf32}}),
           Keys::in_place),
      flag("--deterministic", limit_flags, LAMINA_AT(plan.options.choice.deterministic),
           on("Only algorithms with the same bits on every run"), Keys::all),
      flag("--max_error", error_flags, LAMINA_AT(plan.options.choice.max_error),
           value("Only algorithms that guarantee this error, relative to the sum of |terms|", above_zero(1)),
           Keys::all),
      flag("--workspace_limit", limit_flags, LAMINA_AT(plan.options.choice.workspace_limit),
           bytes(0, "Most workspace of one call, as 0 or 64MiB; default: 1GiB"), Keys::all),
      flag("--measure", measure_flags, LAMINA_AT(plan.options.choice.measure),
           on("Pick the algorithms of whole networks by timing them when a plan is made, not by rule"), Keys::networks,
           "measured"),
      flag("--choice_cache", measure_flags, LAMINA_AT(plan.choice_cache),
           value("File that the choices of --measure are kept in and taken from")),
      flag("--inference", mode_flags, LAMINA_AT(plan.options.mode), inference),
  };
  return table;
}

/// Whether the key of a result shows a flag. `value`: a value that differs from the flag's default.
bool has_flag(const Flag<PlanningSettings>& flag, const KeyOf& of, const std::string& value) {
  const bool is_layer = of.what == "layer", trains = of.part != "inference";
  const auto published = of.as_published.find(flag.key);
  if (published != of.as_published.end() && published->second == value) return false;
  switch (flag.keys) {
    case Keys::none:
    case Keys::in_place: return false;
    case Keys::all: return true;
    case Keys::networks: return !is_layer;
    case Keys::trainings: return !is_layer && trains;
    case Keys::net_rows: return of.what == "net";
    case Keys::layers: return is_layer;
    case Keys::files: return of.of_file;
    case Keys::eigen: return of.backend == "eigen";
  }
  return false;
}

const char* group_of(unsigned set) {
  if (set == onnx_flags) return "Networks of ONNX files";
  return (set & (limit_flags | error_flags | measure_flags)) != 0 ? "Limits, and which algorithms" : "What is timed";
}

}  // namespace

void add_flags(CLI::App& app, unsigned sets, PlanningSettings& settings, const char* needs) {
  for (const Flag<PlanningSettings>& flag : planning_flags()) {
    if ((flag.set & sets) == 0) continue;
    CLI::Option* const option = flag.add(app, flag.name, settings)->group(group_of(flag.set));
    if (needs != nullptr) option->needs(needs);
  }
}

Differs differs_of(const PlanningSettings& settings, const KeyOf& of) {
  Differs differs;
  for (const Flag<PlanningSettings>& flag : planning_flags())
    if (const auto value = flag.value(settings); value && has_flag(flag, of, *value))
      differs.emplace_back(flag.key, flag.name.starts_with("--" + flag.key) ? *value : "");
  return differs;
}

std::vector<std::string> arguments_of(const PlanningSettings& settings, bool unnamed) {
  std::vector<std::string> words;
  for (const Flag<PlanningSettings>& flag : planning_flags())
    if (flag.set != 0 && (!unnamed || flag.keys == Keys::none))
      if (const auto word = flag.word(settings)) words.push_back(*word);
  return words;
}

std::string key_help() {
  std::string text;
  for (const Flag<PlanningSettings>& flag : planning_flags())
    if (!flag.key.empty()) text += " /" + flag.key;
  return text.substr(1);
}

CLI::Option* add_passes(CLI::App& app, int& passes) {
  return app
      .add_option("--passes,--benchmark_repetitions", passes,
                  "Timed passes, after one to warm up; default: 10 on a GPU, 3 on a processor")
      ->check(CLI::Range(1, most_passes))
      ->group("What is timed");
}

CLI::Validator above_zero(double most) {
  return {[most](const std::string& word) {
            char* end = nullptr;
            const double number = std::strtod(word.c_str(), &end);
            return *end == '\0' && number > 0 && number <= most
                       ? ""
                       : fmt::format("{} is no number above 0{}", word, most < 2 ? " and at most 1" : "");
          },
          "above 0"};
}

CLI::Option* add_share(CLI::App& app, const char* names, const std::function<void(double)>& take, const char* text) {
  return app
      .add_option_function<std::string>(
          names,
          [names, take](const std::string& word) {
            char* end = nullptr;
            const double percent = std::strtod(word.c_str(), &end);
            if (end == word.c_str() || std::string(end) != "%" || !(percent > 0 && percent < 1000))
              throw CLI::ValidationError(names, fmt::format("takes a share above 0, as 3%, not \"{}\"", word));
            take(percent / 100);
          },
          text)
      ->type_name("SHARE%");
}

void add_networks(CLI::App& app, std::vector<std::string>& networks, NetSettings& net) {
  app.add_option("networks", networks, "Names of networks, as `lamina_bench networks` prints them")
      ->delimiter(',')
      ->type_name("NET ...");
  app.parse_complete_callback([&networks, &net] {
    for (const std::filesystem::path& file : net.onnx) networks.push_back(network_name(file));
    for (const Layer& layer : net.layers) networks.push_back(layer.name);
    if (networks.empty()) throw CLI::RequiredError("networks, or --onnx");
    check_once("the list of networks", networks);
  });
}

void add_format(CLI::App& app, Format& format) {
  add_choice(app, "--format", format, {{"text", Format::text}, {"csv", Format::csv}}, "Form of the tables");
}

void add_out(CLI::App& app, std::filesystem::path& file) {
  app.add_option("--benchmark_out", file, "File for the results as JSON, every sample in it")->type_name("FILE");
}

void check(const BackendSettings& backends) {
  check_once("--backend", backends.names);
  if (backends.cudnn.find(',') != std::string::npos)
    throw UsageError("--cudnn takes one directory, as a process loads one cuDNN; bench/race/versions compares several");
  if (!backends.cudnn.empty() && !std::filesystem::exists(backends.cudnn))
    throw UsageError(fmt::format("--cudnn={}: there is no such directory", backends.cudnn));
  const auto& names = backends.names;
  if (!backends.instruction_set.empty() && !names.empty() && std::ranges::find(names, "eigen") == names.end())
    throw UsageError(
        "--instruction_set applies to eigen, which --backend does not name; name it too, or leave out the set");
}

void check(const PlanSettings& plan) {
  if (plan.options.mode == Mode::inference &&
      (plan.accumulate.value_or(false) || plan.input_gradient.value_or(false) || plan.options.keep != Keep::all))
    throw UsageError("--accumulate, --input_gradient and --keep are of training: leave them out with --inference");
  if (!plan.choice_cache.empty() && !plan.options.choice.measure)
    throw UsageError("--choice_cache keeps measured choices: give --measure, too, or leave out --choice_cache");
  if (plan.choice_cache.empty()) return;
  check_writable(plan.choice_cache);
  try {
    ChoiceCache{plan.choice_cache};
  } catch (const FileError& error) {
    throw FileError(fmt::format("--choice_cache={}", error.what()));
  }
}

void check(const PlanningSettings& settings) {
  check(settings.backends);
  check(settings.plan);
  check_once("--batch", settings.configs.batches);
  check_once("--dtype", settings.configs.dtypes);
  check_once("--layout", settings.configs.layouts);
  check_onnx_extents(settings.net.onnx, settings.net.onnx_settings);
}

}  // namespace lamina::bench
