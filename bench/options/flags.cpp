// The flags that several subcommands share.

#include "flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>

#include "lamina/choice_cache.h"
#include "lamina/error.h"
#include "lamina/optimiser.h"

namespace lamina::bench {
namespace {

constexpr const char* what = "What is timed";
constexpr const char* algorithms = "Which algorithms";
CLI::Range counts() { return {1, std::numeric_limits<int>::max(), "from 1"}; }

/// A number of bytes: "4GiB", "1.5GiB", "500MB", "4096".
CLI::Option* add_bytes(CLI::App& app, const char* name, std::size_t& to, std::size_t least, const char* text) {
  return app
      .add_option_function<std::string>(
          name,
          [name, &to, least](const std::string& word) {
            static const std::map<std::string, double> units = {
                {"", 1},      {"b", 1},        {"kb", 1e3},     {"mb", 1e6},     {"gb", 1e9},
                {"tb", 1e12}, {"kib", 0x1p10}, {"mib", 0x1p20}, {"gib", 0x1p30}, {"tib", 0x1p40}};
            char* unit = nullptr;
            const double number = std::strtod(word.c_str(), &unit);
            while (*unit == ' ') ++unit;
            const auto known = units.find(CLI::detail::to_lower(unit));
            const double bytes = known != units.end() && unit != word ? number * known->second : -1;
            constexpr double most = 0x1p62;
            if (!(bytes >= static_cast<double>(least) && bytes <= most))
              throw CLI::ValidationError(name, fmt::format("takes bytes, as 4GiB, 1.5GiB or 500MB, not \"{}\"", word));
            to = static_cast<std::size_t>(bytes);
          },
          text)
      ->type_name("BYTES");
}

template <class T, class Text>
void check_once(const char* flag, std::vector<T> values, const Text& text) {
  std::sort(values.begin(), values.end());
  const auto twice = std::adjacent_find(values.begin(), values.end());
  if (twice != values.end()) throw UsageError(fmt::format("{} names {} twice; once is enough", flag, text(*twice)));
}

constexpr auto as_it_is = [](const auto& value) { return value; };
constexpr auto by_name = [](auto value) { return to_string(value); };

void add_optional(CLI::App& app, const char* names, std::optional<bool>& to, const char* text) {
  app.add_flag_function(
         names,
         [names, &to](std::int64_t count) {
           if (count == 0) throw CLI::ValidationError(names, "exclude each other; give one");
           to = count > 0;
         },
         text)
      ->group(what);
}

}  // namespace

CLI::Option* add_passes(CLI::App& app, int& passes) {
  return app
      .add_option("--passes,--benchmark_repetitions", passes,
                  "Timed passes, after one to warm up; default: 10 on a GPU, 3 on a processor")
      ->check(CLI::Range(1, most_passes))
      ->group(what);
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

void add_size(CLI::App& app, NetSettings& net) {
  add_onnx(app, net.onnx, net.onnx_settings, "ONNX files: networks that are called by the names of their files");
  app.add_option("--image", net.image,
                 "Rows and columns of the input; `lamina_bench networks` prints the smallest; default: the network's "
                 "own")
      ->check(counts())
      ->group(what);
  app.add_option("--width_divisor", net.width_divisor, "Divides every hidden width: narrow networks for trials")
      ->check(counts())
      ->group(what);
  add_optional(app, "--softmax,!--no_softmax", net.softmax, "End the network in a softmax; default: as published");
}

void add_batch(CLI::App& app, ConfigSettings& configs) {
  add_list(app, "--batch", configs.batches, "Images per pass; default: 16")->check(counts());
}

void add_layout(CLI::App& app, ConfigSettings& configs) {
  choose<Layout>(add_list(app, "--layout", configs.layouts, "Layouts of tensors; default: nchw"),
                 {{"nchw", Layout::nchw}, {"nhwc", Layout::nhwc}});
}

void add_cudnn(CLI::App& app, std::string& directory) {
  app.add_option("--cudnn", directory, "Directory of the cuDNN to load; bench/race/versions compares several")
      ->type_name("DIR")
      ->group(what);
}

void add_processor(CLI::App& app, BackendSettings& backends) {
  app.add_option("--threads", backends.threads, "Threads of the processor's backends; default: 0, all")
      ->check(CLI::Range(0, most_backend_threads))
      ->group(what);
  app.add_option(
         "--instruction_set", backends.instruction_set,
         "Instruction set of eigen: generic, x86-64-v3, x86-64-v4, x86-64-v4-bf16; default: the widest that runs")
      ->group(what);
}

void add_place(CLI::App& app, PlanningSettings& settings, const char* of_backends, double* measured_error) {
  auto& [backends, net, configs, plan] = settings;
  add_list(app, "--backend", backends.names, of_backends);
  add_layout(app, configs);
  choose<DType>(add_list(app, "--dtype", configs.dtypes, "Element types; default: f32"), dtypes);
  add_processor(app, backends);
  add_cudnn(app, backends.cudnn);
  add_bytes(app, "--memory_limit", backends.memory_limit, 1,
            "Most memory of a backend, as 4GiB or 500MB: a plan beyond it is out of memory")
      ->group(what);
  add_choice(app, "--math", plan.choice.math, {{"strict", Math::strict}, {"tf32", Math::tf32}},
             "Math of products; default: strict")
      ->group(algorithms);
  app.add_flag("--deterministic", plan.choice.deterministic, "Only algorithms with the same bits on every run")
      ->group(algorithms);
  add_bytes(app, "--workspace_limit", plan.choice.workspace_limit, 0,
            "Most workspace of one call, as 0 or 64MiB; default: 1GiB")
      ->group(algorithms);
  const bool measured = measured_error != nullptr;
  app.add_option(measured ? "--max_measured_error" : "--max_error", measured ? *measured_error : plan.choice.max_error,
                 fmt::format("Only algorithms {} this error, relative to the sum of |terms|",
                             measured ? "that were measured to keep" : "that guarantee"))
      ->check(above_zero(1))
      ->group(algorithms);
}

void add_plan(CLI::App& app, PlanningSettings& settings, const char* of_backends, double* measured_error) {
  PlanSettings& plan = settings.plan;
  add_place(app, settings, of_backends, measured_error);
  add_batch(app, settings.configs);
  add_size(app, settings.net);
  add_choice(app, "--keep", plan.keep, {{"all", Keep::all}, {"cheap", Keep::cheap}},
             "Values kept for backward: all, or cheap (those that are cheap to compute again are dropped)")
      ->group(what);
  app.add_flag("!--unfused", plan.fuse, "No fusion: every op runs alone")->group(what);
  add_optional(app, "--input_gradient,!--no_input_gradient", plan.input_gradient,
               "Compute the image's gradient; default: as published");
  add_optional(app, "--accumulate,!--no_accumulate", plan.accumulate,
               "Add to parameter gradients; default: as published");
}

void add_measure(CLI::App& app, PlanSettings& plan) {
  app.add_flag("--measure", plan.choice.measure,
               "Pick those of whole networks by timing them when a plan is made, not by rule")
      ->group(algorithms);
  app.add_option("--choice_cache", plan.choice_cache, "File that the choices of --measure are kept in and taken from")
      ->type_name("FILE")
      ->group(what);
}

CLI::Option* add_optimiser(CLI::App& app, std::string& optimiser, const char* text) {
  return app.add_option("--optimiser", optimiser, text)->check(CLI::IsMember(optimiser_names()));
}

void check_once(const char* flag, const std::vector<std::string>& values) { check_once(flag, values, as_it_is); }

void check_once(const char* flag, const std::vector<int>& values) { check_once(flag, values, as_it_is); }

void check(const BackendSettings& backends) {
  check_once("--backend", backends.names);
  if (backends.cudnn.find(',') != std::string::npos)
    throw UsageError("--cudnn takes one directory, as a process loads one cuDNN; bench/race/versions compares several");
  if (!backends.cudnn.empty() && !std::filesystem::exists(backends.cudnn))
    throw UsageError(fmt::format("--cudnn={}: there is no such directory", backends.cudnn));
  const auto& names = backends.names;
  if (!backends.instruction_set.empty() && !names.empty() &&
      std::find(names.begin(), names.end(), "eigen") == names.end())
    throw UsageError(
        "--instruction_set applies to eigen, which --backend does not name; name it too, or leave out the set");
}

void check(const PlanSettings& plan) {
  if (!plan.choice_cache.empty() && !plan.choice.measure)
    throw UsageError("--choice_cache keeps what is measured: give --measure too, or leave it out");
  const std::filesystem::path folder = plan.choice_cache.parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder))
    throw UsageError(fmt::format("--choice_cache={}: there is no folder {}; make it first", plan.choice_cache.string(),
                                 folder.string()));
  if (plan.choice_cache.empty()) return;
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
  check_once("--dtype", settings.configs.dtypes, by_name);
  check_once("--layout", settings.configs.layouts, by_name);
  check_onnx_extents(settings.net.onnx, settings.net.onnx_settings);
}

}  // namespace lamina::bench
