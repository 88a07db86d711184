// The subcommands: the flags and the action of each.

#include "commands.h"

#include <cstdio>
#include <memory>

#include "bench/compare/comparison.h"
#include "bench/context/context.h"
#include "bench/io/interrupt.h"
#include "bench/options/flags.h"
#include "bench/race/serve/server.h"
#include "bench/sweep/sweep.h"
#include "bench/tasks/describe.h"
#include "bench/tasks/engines/engines.h"
#include "bench/tasks/frontier.h"
#include "bench/tasks/ledger.h"
#include "bench/train/train.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

void print_now(const std::string& text) {
  fmt::print("{}", text);
  if (std::fflush(stdout) != 0) throw FileError("cannot write to standard output");
}

int printed(const std::string& text) { return print_now(text), 0; }

int status_of_interrupt() { return interrupted() != 0 ? 128 + interrupted() : 0; }

/// Adds the argument for names of networks, and groups of flags. Gives the options that the arguments set.
template <class Options>
std::shared_ptr<Options> with_networks(CLI::App& app, unsigned flags, bool tables = true) {
  auto options = std::make_shared<Options>();
  add_networks(app, options->networks, options->net);
  if (tables) add_format(app, options->format);
  add_flags(app, flags, *options);
  return options;
}

constexpr unsigned task_flags = network_flags | error_flags | measure_flags;

/// Adds --max_measured_error, a limit on the measured error. `frontier` and the layer subcommands have this flag in
/// place of --max_error.
void add_measured_error(CLI::App& app, FrontierOptions& options) {
  app.add_option("--max_measured_error", options.max_measured_error,
                 "Largest measured error to accept, relative to the sum of |terms|")
      ->check(above_zero(1));
}

Action ledger(CLI::App& app) {
  auto options = with_networks<LedgerOptions>(app, task_flags | mode_flags);
  add_passes(app, options->passes);
  add_out(app, options->out);
  app.add_option("--trace", options->trace, "Trace file of the calls, for ui.perfetto.dev or chrome://tracing")
      ->type_name("FILE");
  return [options](const MakeBackend& make) {
    catch_interrupts();
    check(*options);
    Session session(*options, make);
    ledgers(session, *options, print_now);
    return status_of_interrupt();
  };
}

/// Adds --passes and --benchmark_out. Gives the action that measures every algorithm of networks, or of layers.
Action measure_algorithms(CLI::App& app, const std::shared_ptr<FrontierOptions>& options) {
  add_passes(app, options->passes);
  add_out(app, options->out);
  return [options](const MakeBackend& make) {
    catch_interrupts();
    for (const Layer& layer : options->net.layers) options->networks.push_back(layer.name);
    check_once("the list of layers", options->networks);
    check(*options);
    Session session(*options, make);
    const bool any_ran = frontiers(session, *options, print_now);
    return interrupted() == 0 && !any_ran ? 1 : status_of_interrupt();
  };
}

Action frontier(CLI::App& app) {
  auto options = with_networks<FrontierOptions>(app, network_flags | mode_flags);
  add_measured_error(app, *options);
  return measure_algorithms(app, options);
}

/// The subcommand `layers`, which reads a file of layers, or the subcommand of an op, which measures one layer.
Action layers(CLI::App& app) {
  auto options = std::make_shared<FrontierOptions>();
  (app.get_name() == "layers" ? add_layer_file : add_layer)(app, options->net.layers);
  add_format(app, options->format);
  add_flags(app, place_flags, *options);
  add_measured_error(app, *options);
  return measure_algorithms(app, options);
}

Action compare(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  app.add_option("A", options->first, "Results before a change: a file, or a folder with a file of each process")
      ->type_name("PATH");
  app.add_option("B", options->second, "Results after the change: a file or a folder")->type_name("PATH");
  auto* const paired = app.add_option("--paired", options->paired, "Instead of A and B: variants that took turns");
  paired->type_name("FILE");
  add_list(app, "--subject", options->subjects, "Variants to compare with all others, and with the fastest of those")
      ->type_name("VARIANT[,...]")
      ->needs(paired);
  app.parse_complete_callback([options] {
    if (!options->first.empty() && !options->paired.empty())
      throw UsageError("--paired takes one file in place of A and B");
    if (options->second.empty() && options->paired.empty())
      throw UsageError("compare needs A and B; or --paired=FILE, a file with variants that took turns");
  });
  add_share(
      app, "--fail-if-slower,--fail_if_slower", [options](double share) { options->rules.fail_if_slower = share; },
      "Exit 3 if a row is slower by over this share, or fails or is missing only in B; exit 4: too few processes");
  add_share(
      app, "--smallest", [options](double share) { options->rules.smallest = share; },
      "Change that the comparison should find; rows that differ by surely less are equal; default: 2%");
  app.add_flag("--any_load", options->rules.any_load, "Judge rows that other programs disturbed, too")
      ->excludes(paired);
  app.add_flag("--cpu_time", options->rules.cpu_time, "Compare processor time, which other programs change less");
  app.add_flag("--other_machine", options->other_machine, "Compare files of different machines or threads")
      ->excludes(paired);
  add_format(app, options->format);
  add_out(app, options->out);
  return [options](const MakeBackend&) { return compare_files(*options, print_now); };
}

Action sweep(CLI::App& app) {
  auto options = with_networks<SweepOptions>(app, network_flags | error_flags | mode_flags, false);
  app.add_option("--benchmark_out", options->out,
                 "File for the rows; an unfinished file of the same sweep is completed")
      ->type_name("FILE")
      ->required();
  app.get_option("--batch")->description("Images per pass; default: 15, 17, and 1, 2, 4, ... as far as memory allows");
  add_passes(app, options->passes);
  app.option_defaults()->group("What is swept");
  add_list(app, "--thread_counts", options->thread_counts, "Numbers of threads; default: 1, 2, 4, ... all")
      ->check(CLI::Range(1, most_backend_threads));
  add_list(app, "--images", options->images, "Rows and columns of the input; default: the value of --image")
      ->check(CLI::Range(1, 65536));
  app.add_option("--longest_pass", options->longest_pass,
                 "Leave out batches whose pass would take more seconds than this; default: 20")
      ->check(above_zero());
  return [options](const MakeBackend& make) {
    catch_interrupts();
    check(*options);
    check_once("--thread_counts", options->thread_counts);
    check_once("--images", options->images);
    return sweep(*options, make, print_now);
  };
}

Action memory(CLI::App& app) {
  auto options = with_networks<MemoryOptions>(app, task_flags | mode_flags);
  app.add_option("--optimiser", options->optimiser, "Optimiser whose state is counted; default: none")
      ->check(CLI::IsMember(optimiser_names()))
      ->excludes("--inference");
  add_out(app, options->out);
  return [options](const MakeBackend& make) {
    check(*options);
    Session session(*options, make);
    return printed(describe_memory(session, *options));
  };
}

Action describe(CLI::App& app) {
  constexpr unsigned of_layers = onnx_flags | size_flags | backend_flags | dtype_flags;
  auto options = with_networks<DescribeOptions>(app, of_layers);
  app.get_option("--backend")->description("Backends, to print their algorithms; without it the layers are printed");
  add_flags(app, (task_flags | mode_flags) & ~of_layers, *options, "--backend");
  return [options](const MakeBackend& make) {
    check(*options);
    if (options->backends.names.empty()) return printed(describe(*options));
    Session session(*options, make);
    return printed(describe_algorithms(session, *options));
  };
}

/// Adds a subcommand for each kind of layer. Gives a function to call after parsing: it throws UsageError if a layer is
/// given together with a flag for the size of networks.
std::function<void()> add_own_layers(CLI::App& app, NetSettings& net) {
  app.option_defaults()->group("Options");
  add_layers(app, net.layers);
  return [&] {
    for (const char* flag : {"--batch", "--image", "--width_divisor", "--softmax"})
      if (!net.layers.empty() && app.count(flag) > 0)
        throw UsageError(
            fmt::format("{0} applies to networks only, and a layer is given by its own flags; leave out {0}", flag));
  };
}

Action check_gradients_of(CLI::App& app) {
  auto options = with_networks<CheckOptions>(app, task_flags, false);
  options->configs = {.batches = {2}, .dtypes = {DType::f64}};
  app.get_option("--batch")->description("Images of a pass; default: 2");
  app.get_option("--dtype")->description("Element type; default: f64");
  app.option_defaults()->group("What is compared");
  app.add_option("--coordinates", options->how.coordinates,
                 "An f64 tensor of at most this many elements is compared element by element; default: 4")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--directions", options->how.directions, "Directions to compare in other tensors; default: 2")
      ->check(CLI::PositiveNumber);
  app.add_option("--seed", options->how.seed, "Seed of inputs and directions; default: 1");
  return [options, check_layers = add_own_layers(app, options->net)](const MakeBackend& make) {
    check_layers();
    check(*options);
    Session session(*options, make);
    return check_networks(session, *options, print_now);
  };
}

Action networks(CLI::App& app) {
  auto format = std::make_shared<Format>();
  add_format(app, *format);
  return [format](const MakeBackend&) { return printed(list_networks(*format)); };
}

Action devices(CLI::App& app) {
  auto format = std::make_shared<Format>();
  auto settings = std::make_shared<PlanningSettings>();
  add_format(app, *format);
  add_flags(app, processor_flags | cudnn_flags, *settings);
  return [format, settings](const MakeBackend& make) {
    check(*settings);
    Backends backends(settings->backends, make);
    Peaks peaks(backends);
    return printed(device_table(backends, peaks, *format));
  };
}

Action engines(CLI::App& app) {
  auto options = with_networks<EnginesOptions>(
      app, onnx_flags | size_flags | batch_flags | dtype_flags | layout_flags | cudnn_flags | mode_flags, false);
  app.add_option("--device", options->device, "Device: a100, h100, h200, or a JSON file of properties")
      ->type_name("NAME|FILE")
      ->required();
  add_list(app, "--layer", options->layers, "Only these layers, as `lamina_bench describe` names them")
      ->type_name("LAYER,...");
  add_choice(app, "--build", options->build, {{"first", BuildPlans::first}, {"all", BuildPlans::all}},
             "Plans to build for each graph: the first that finalises, or all");
  app.add_option("--plans", options->backends.plans, "Folder that plans are kept in, and loaded from")
      ->type_name("DIR");
  app.get_option("--cudnn")->type_name("DIR,...")->description(
      "Directories of the cuDNN to ask, each in processes of its own; several are compared with the first");
  app.add_option("--benchmark_out", options->out, "File for the answers as JSON");
  return [options, check_layers = add_own_layers(app, options->net)](const MakeBackend&) {
    check_layers();
    check_onnx_extents(options->net.onnx, options->net.onnx_settings);
    return printed(cudnn_engines(*options));
  };
}

Action train(CLI::App& app) {
  auto options = std::make_shared<TrainOptions>();
  add_train_flags(app, *options);
  return [options](const MakeBackend& make) {
    catch_interrupts();
    check(*options);
    return train_all(*options, make, print_now);
  };
}

Action serve(CLI::App& app) {
  auto options = std::make_shared<ServeOptions>();
  options->backends.names = {"eigen"};
  app.add_option("network", options->network, "Network; default: convolutions, unless --onnx or --training is given");
  add_flags(app, network_flags | measure_flags | row_flags, *options);
  app.add_option("--device", options->backends.device, "Number of the GPU; default: 0");
  ServedTrainingOptions& training = options->training;
  app.add_option("--files", training.files, "Folder from which peers read the network, or the epochs");
  app.add_flag("--write_onnx", options->write_onnx, "Write the network to the folder as ONNX, too");
  app.add_option("--training", training.workload, "Workload whose epochs are served");
  app.add_option("--share", training.share, "Share of the workload's synthetic set; default: 1");
  app.add_option("--epochs", training.epochs, "Number of epochs to write to the folder; default: 1");
  return [options](const MakeBackend&) { return run_serve(*options); };
}

constexpr Command every_command[] = {
    {"run", "Time rows of networks and layers; the default subcommand", run_command, true},
    {"ledger", "Times per layer and pass, longest first; their sum, compared with the whole pass", ledger},
    {"frontier", "The best algorithms per layer and pass (time, memory); the fastest network with them", frontier},
    {"compare", "Compare two sets of results by row: faster, slower, equal or inconclusive; a gate for CI", compare},
    {"check", "Check gradients of networks or ONNX files by finite differences: which are wrong, and where",
     check_gradients_of},
    {"sweep", "Time networks by threads, size, type, backend, and batch until memory is full; answers in words", sweep},
    {"memory", "Memory of training and inference at a batch, by kind; the largest batch that fits", memory},
    {"describe", "Layers: op, output, parameters, multiply-adds, bytes; with --backend, algorithms and why", describe},
    {"networks", "List the networks: names, images, sources", networks},
    {"devices", "List processor and GPUs: their properties and their measured rates", devices},
    {"engines", "Engines that cuDNN proposes per layer and pass on a device, which may be absent", engines},
    {"train", "Train workloads, networks, ONNX files: seconds, dollars, loss and accuracy by epoch", train, true},
    {"conv", "Time one convolution by every algorithm: workspace, error, determinism, the pick and why", layers},
    {"fully_connected", "Like conv, for a fully connected layer", layers},
    {"max_pool", "Like conv, for a max pooling", layers},
    {"average_pool", "Like conv, for an average pooling", layers},
    {"batch_norm", "Like conv, for a batch normalisation", layers},
    {"lstm", "Like conv, for an LSTM", layers},
    {"gru", "Like conv, for a GRU", layers},
    {"layers", "Like conv, for many layers: a file has a line for each", layers},
    {"serve", "Run one pass per request, for bench/race/race; requests come on standard input", serve}};

}  // namespace

std::span<const Command> commands() { return every_command; }

}  // namespace lamina::bench
