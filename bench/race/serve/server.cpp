// Lamina's side of every race between processes.

#include "server.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <sstream>

#include "bench/context/build.h"
#include "bench/measure/net_run.h"
#include "bench/measure/session.h"
#include "convolution.h"
#include "lamina/lamina.h"

namespace lamina::bench {
namespace {

using nlohmann::json;

void say(const json& answer) { std::cout << answer.dump() << std::endl; }

json state_of(const DeviceState& state) {
  json answer = readings_of(state);
  if (!state.throttled.empty()) answer["throttled"] = state.throttled;
  if (!state.missing.empty()) answer["missing"] = state.missing;
  return answer;
}

/// The passes of `open`; torch_worker.py has as many.
int warm_up_passes(bool on_gpu) { return on_gpu ? 5 : 1; }

/// A network in one mode and layout, as the published tables timed it. Every backend but eigen counts as a GPU's: each
/// of its timed passes comes after one untimed, so that clocks and caches are as passes back to back leave them.
class ServedNet final : public Served {
 public:
  ServedNet(const Plans& plans, const Config& c, Backend& backend, const Options& options, bool record)
      : run_(plans.graph(c), backend, options, record, plans.weights(c)), on_gpu_(c.backend != "eigen") {}

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

void serve_options(const ServeOptions& options) {
  const Config c{options.net.onnx.empty() ? options.network : network_name(options.net.onnx.front()),
                 options.backends.names.front(), options.configs.dtypes.front(), Layout::nchw,
                 options.configs.batches.front()};
  Backends backends(options.backends);
  const Plans plans(options.net, options.plan);
  Backend& backend = backends.usable(c.backend);
  const json greeting = {{"commit", build::commit},
                         {"backend", backend.describe()},
                         {"device", backend.device().describe()},
                         {"threads", backends.threads()},
                         {"measure", options.plan.choice.measure},
                         {"graph", options.plan.cuda_graph},
                         {"math", to_string(options.plan.choice.math)}};
  const ServedTrainingOptions& epochs = options.training;
  if (!epochs.workload.empty() && !epochs.files.empty()) write_batches(epochs, backend);
  if (!c.network.empty() && !epochs.files.empty())
    write_network_files(plans.graph(c), plans.weights(c), backend, epochs.files, options.write_onnx);
  const Open open = [&](const std::string& what, const std::string& variant,
                        const std::string& numbers) -> std::unique_ptr<Served> {
    if (!epochs.workload.empty()) return serve_training(epochs, backend);
    Config its = c;
    its.layout = named("layout", variant, {Layout::nchw, Layout::nhwc});
    if (c.network.empty()) {
      const Pass pass = named("pass", what, raced_passes);
      Options of_layer;
      of_layer.dtype = its.dtype;
      of_layer.layout = its.layout;
      of_layer.choice = options.plan.choice;
      if (of_layer.choice.measure) of_layer.tuner = make_tuner();
      of_layer.input_gradient = pass == Pass::backward_data;
      return serve_convolution(backend, read_convolution(numbers), pass, of_layer);
    }
    if (what != "training" && what != "inference")
      throw UsageError("no mode '" + what + "'; there are training and inference");
    const Mode mode = what == "training" ? Mode::training : Mode::inference;
    return std::make_unique<ServedNet>(plans, its, backend, plans.options(its, mode), options.plan.cuda_graph);
  };
  serve(greeting, open, &backend.device());
}

}  // namespace

void put(json& answer, const std::string& what, const Sample& sample) {
  answer[what] = sample.seconds;
  answer[what + "_cpu"] = sample.cpu_seconds;
}

void serve(const json& greeting, const Open& open, Device* device) {
  std::map<std::string, std::unique_ptr<Served>> all;  // by the words that asked for it
  const auto made = [&](const std::string& rest) -> Served& {
    std::unique_ptr<Served>& served = all[rest];
    std::istringstream words(rest);
    std::string what, variant, numbers;
    words >> what >> variant >> std::ws;
    std::getline(words, numbers);
    if (!served) served = open(what, variant, numbers);
    return *served;
  };
  const auto answer = [&](const std::string& command, const std::string& rest) -> json {
    if (command == "drop") return all.clear(), json::object();
    if (command == "open") return made(rest).warm_up(), made(rest).facts();
    if (command == "pass") return made(rest).pass();
    if (command == "facts") return made(rest).facts();
    if (command == "state") return device == nullptr ? json::object() : state_of(device->state());
    if (command == "result") return {{"result", made(rest).result()}};
    if (command == "list") {
      const std::size_t space = rest.find(' ');
      return convolutions_of(rest.substr(0, space), std::atoi(rest.c_str() + std::min(space, rest.size())));
    }
    throw UsageError("no command '" + command + "'; there are open, facts, pass, result, list, state and drop");
  };
  say(greeting);
  for (std::string line; std::getline(std::cin, line);) {
    const std::size_t space = std::min(line.find(' '), line.size() - 1);
    try {
      say(answer(line.substr(0, line.find(' ')), line.substr(space + 1)));
    } catch (const Unsupported& error) {
      say({{"error", error.what()}, {"refused", true}});
    }
  }
}

int answering(const std::function<void()>& work) {
  try {
    work();
    return 0;
  } catch (const Unsupported& error) {
    say({{"error", error.what()}, {"refused", true}});
  } catch (const std::exception& error) {
    say({{"error", error.what()}});
  }
  return 1;
}

int run_serve(const ServeOptions& options) {
  return answering([&] { serve_options(options); });
}

}  // namespace lamina::bench
