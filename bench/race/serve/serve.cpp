// lamina_bench serve: Lamina's side of every race between processes.

#include "serve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <exception>
#include <iostream>
#include <map>

#include "bench/context/build.h"
#include "bench/measure/net_run.h"
#include "bench/measure/networks.h"
#include "convolution.h"
#include "lamina/lamina.h"
#include "lib/core/text/depth_limit.h"
#include "network_files.h"
#include "training.h"

namespace lamina::bench {
namespace {

using nlohmann::json;

/// The passes of `open`; torch_worker.py has as many.
int warm_up_passes(bool on_gpu) { return on_gpu ? 5 : 1; }

/// A network by its name, or of an ONNX file.
struct Asked {
  NetSettings settings{};
  Config config;

  Asked(const std::string& net, const std::string& backend, int batch)
      : config{.network = net, .backend = backend, .batch = batch} {
    if (!net.ends_with(".onnx")) return;
    settings.onnx = {net};
    config.network = network_name(net);
  }
  Graph graph() const { return graph_of(config, settings); }
  TensorFile weights() const { return stored_weights(config, settings); }
};

/// A network in one mode and layout, as the published tables timed it. Every backend but eigen counts as a GPU's: each
/// of its timed passes comes after one untimed, so that clocks and caches are as passes back to back leave them.
class ServedNet final : public Served {
 public:
  ServedNet(const Asked& net, Backend& backend, const Options& options, bool record)
      : run_(net.graph(), backend, options, record, net.weights()), on_gpu_(net.config.backend != "eigen") {}

  void warm_up() override {
    for (int i = 0; i < warm_up_passes(on_gpu_); ++i) pass();
  }

  json facts() const override {
    std::map<std::string, int> math;  // of how many calls
    for (const Call& call : run_.plan().calls()) ++math[std::string(to_string(call.math))];
    return {{"plan_bytes", run_.plan().memory().total()}, {"math_of_calls", math}};
  }

  json pass() override {
    const std::vector<Sample> samples = run_.pass(on_gpu_);
    json answer;
    put(answer, samples.size() == 1 ? "inference" : "forward", samples[0]);
    if (samples.size() > 1) put(answer, "backward", samples[1]);
    return answer;
  }

 private:
  NetRun run_;
  bool on_gpu_;
};

/// One of the values by its name; UsageError for an unknown one.
template <class T, std::size_t n>
T one_of(const char* what, const std::string& name, const std::array<T, n>& known) {
  std::vector<std::string_view> names;
  for (const T value : known) {
    if (name == to_string(value)) return value;
    names.push_back(to_string(value));
  }
  throw UsageError(fmt::format("no {} '{}'; there are {}", what, name, fmt::join(names, ", ")));
}

void serve_config(const json& config) {
  const std::string net = config.value("net", std::string()), name = config.value("backend", std::string("eigen"));
  const bool record = config.value("graph", false);
  const int threads = config.value("threads", 0);
  const auto backend = make_backend(name, {.threads = threads, .device = config.value("device", 0)});
  if (const std::string reason = backend->available(); !reason.empty()) throw Unsupported(reason);
  Options common;
  common.choice.measure = config.value("measure", false);
  if (common.choice.measure) common.tuner = make_tuner();
  common.choice.math =
      one_of("math", config.value("math", std::string("strict")), std::array{Math::strict, Math::tf32});
  common.dtype =
      one_of("type", config.value("type", std::string("f32")), std::array{DType::f32, DType::f16, DType::bf16});
  const json greeting = {{"commit", build::commit},
                         {"backend", backend->describe()},
                         {"device", backend->device().describe()},
                         {"threads", threads},
                         {"measure", common.choice.measure},
                         {"graph", record},
                         {"math", to_string(common.choice.math)}};
  const ServedTrainingOptions epochs{config.value("training", std::string()), config.value("share", 1.0),
                                     config.value("epochs", 1), config.value("files", std::string())};
  if (!epochs.workload.empty() && !epochs.files.empty()) write_batches(epochs, *backend);
  const Asked asked(net, name, config.value("batch", 16));
  if (!net.empty() && !epochs.files.empty())
    write_network_files(asked.graph(), asked.weights(), *backend, epochs.files, config.value("onnx", false));
  const Open open = [&](const std::string& what, const std::string& variant,
                        const std::string& numbers) -> std::unique_ptr<Served> {
    if (!epochs.workload.empty()) return serve_training(epochs, *backend);
    Options options = common;
    options.layout = one_of("layout", variant, std::array{Layout::nchw, Layout::nhwc});
    if (net.empty()) {
      const Pass pass = pass_of(what);
      options.input_gradient = pass == Pass::backward_data;
      return serve_convolution(*backend, read_convolution(numbers), pass, options);
    }
    if (what != "training" && what != "inference")
      throw UsageError("no mode '" + what + "'; there are training and inference");
    const bool training = what == "training";
    options.mode = training ? Mode::training : Mode::inference;
    const nets::Protocol protocol = network(asked.config.network, asked.settings).protocol;
    options.input_gradient = training && protocol.input_gradient;
    options.accumulate_parameters = training && protocol.accumulate;
    return std::make_unique<ServedNet>(asked, *backend, options, record);
  };
  serve(greeting, open, &backend->device());
}

}  // namespace

int run_serve(const std::string& config) {
  try {
    serve_config(json::parse(config, not_too_deep<json>));
    return 0;
  } catch (const Unsupported& error) {
    std::cout << json{{"error", error.what()}, {"refused", true}}.dump() << std::endl;
  } catch (const std::exception& error) {
    std::cout << json{{"error", error.what()}}.dump() << std::endl;
  }
  return 1;
}

}  // namespace lamina::bench
