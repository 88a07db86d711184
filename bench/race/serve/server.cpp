// Lamina's worker in a race, and the common part of workers for single convolutions.

#include "server.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <span>
#include <sstream>

#include "bench/context/build.h"
#include "bench/measure/net_run.h"
#include "bench/measure/session.h"
#include "lamina/lamina.h"

namespace lamina::bench {
namespace {

constexpr double sample_seconds = 0.1;  // ten ticks of the clocks that measure the use by other processes

std::string spell(const RacedConvolution& conv) {
  const auto& [x, op] = conv;
  std::ostringstream text;
  text << x.n << ' ' << x.c << ' ' << x.h << ' ' << x.w << ' ' << op.channels;
  for (const Size& size : {op.kernel, op.stride, op.pad, op.dilation}) text << ' ' << size.h << ' ' << size.w;
  text << ' ' << op.groups << ' ' << op.bias;
  return text.str();
}

Graph alone(const RacedConvolution& convolution) {
  Graph graph("layer");
  conv(graph.input(convolution.x), "conv", convolution.op);
  return graph;
}

/// A convolution, as a plan of one node in training mode. The variants of a request are the layouts.
class Convolved final : public ServedConvolution {
 public:
  Convolved(Backend& backend, const RacedConvolution& conv, Pass pass, const Options& options)
      : ServedConvolution(pass), plan_(alone(conv), backend, options), stopwatch_(plan_) {
    set(plan_.input(), "x");
    set(plan_.output_gradient(), "dy");
    for (const std::string& name : plan_.parameter_names())
      set(plan_.parameter(name), name == "conv.weight" ? "w" : "bias");
    plan_.parameters_changed();
  }

  std::vector<float> result() override {
    run();
    std::vector<float> all;
    if (pass_ == Pass::forward) append(all, plan_.output());
    if (pass_ == Pass::backward_data) append(all, plan_.input_gradient());
    if (pass_ == Pass::backward_params)
      for (const std::string& name : plan_.parameter_names()) append(all, plan_.parameter_gradient(name));
    return all;
  }

 private:
  std::string implementation() const override {
    return std::ranges::find_if(plan_.calls(), [&](const Call& call) { return call.covers(pass_); })->algorithm;
  }

  Sample run() override { return stopwatch_.pass(pass_); }

  void set(const Tensor& to, const std::string& tensor) {
    upload(plan_.backend().device(), to, std::span<const float>(whole_numbers(to.shape.count(), tensor)));
  }

  void append(std::vector<float>& all, const Tensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.count()));
    download(plan_.backend().device(), std::span<float>(values), tensor);
    all.insert(all.end(), values.begin(), values.end());
  }

  Plan plan_;
  CallStopwatch stopwatch_;
};

using nlohmann::json;

void say(const json& answer) { std::cout << answer.dump() << std::endl; }

json state_of(const DeviceState& state) {
  json answer = readings_of(state);
  if (!state.throttled.empty()) answer["throttled"] = state.throttled;
  if (!state.missing.empty()) answer["missing"] = state.missing;
  return answer;
}

/// A network's convolutions: names, numbers, and whether a training computes the data gradient. Throws UsageError.
json convolutions_of(const std::string& net, int batch) {
  const nets::Protocol protocol = nets::info(net).protocol;
  const Graph graph = nets::build(net, {.batch = batch});
  json layers = json::array();
  for (const Node& node : graph.nodes()) {
    const auto* op = std::get_if<Conv>(&node.op);
    if (op == nullptr) continue;
    const Node& x = graph.nodes()[static_cast<std::size_t>(node.inputs.front())];
    layers.push_back({{"name", node.name},
                      {"conv", spell({x.shape, *op})},
                      {"backward_data", !std::holds_alternative<Input>(x.op) || protocol.input_gradient}});
  }
  return {{"convolutions", layers}};
}

/// A network in one mode and layout, timed by its protocol. For every backend except eigen, an untimed pass runs right
/// before each timed pass, as on a GPU. So clocks and caches are as in a sequence of passes.
class ServedNet final : public Served {
 public:
  ServedNet(const Plans& plans, const Config& c, Backend& backend, const Options& options, bool record)
      : run_(plans.graph(c), backend, options, record, plans.weights(c), nullptr, c.backend != "eigen"),
        warm_up_passes_(c.backend == "eigen" ? 1 : 5) {}

  void warm_up() override {
    for (int i = 0; i < warm_up_passes_; ++i) pass();
  }

  json facts() const override {
    std::map<std::string, int> math;  // {math: number of calls with it}
    for (const Call& call : run_.plan().calls()) ++math[std::string(to_string(call.math))];
    return {{"plan_bytes", run_.plan().memory().total()}, {"math_of_calls", math}};
  }

  json pass() override {
    const std::vector<Sample> samples = run_.pass();
    json answer;
    put(answer, samples.size() == 1 ? "inference" : "forward", samples[0]);
    if (samples.size() > 1) put(answer, "backward", samples[1]);
    return answer;
  }

 private:
  NetRun run_;
  int warm_up_passes_;  ///< number of passes, as in torch_worker.py
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
                         {"measure", options.plan.options.choice.measure},
                         {"graph", options.plan.cuda_graph},
                         {"math", to_string(options.plan.options.choice.math)}};
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
      Options of_layer{.dtype = its.dtype, .layout = its.layout, .choice = options.plan.options.choice};
      of_layer.input_gradient = pass == Pass::backward_data;
      of_layer.choice.joins_gradients = false;  // because a single pass is timed
      if (of_layer.choice.measure) of_layer.tuner = make_tuner();
      return std::make_unique<Convolved>(backend, read_convolution(numbers), pass, of_layer);
    }
    const Mode mode = what == "training" ? Mode::training : Mode::inference;
    if (what != mode_name(mode)) throw UsageError("no mode '" + what + "'; there are training and inference");
    return std::make_unique<ServedNet>(plans, its, backend, plans.options(its, mode), options.plan.cuda_graph);
  };
  serve(greeting, open, &backend.device());
}

}  // namespace

RacedConvolution read_convolution(const std::string& text) {
  RacedConvolution conv{{}, {.channels = 0, .kernel = 0}};
  auto& [x, op] = conv;
  std::istringstream words(text);
  words >> x.n >> x.c >> x.h >> x.w >> op.channels >> op.kernel.h >> op.kernel.w >> op.stride.h >> op.stride.w >>
      op.pad.h >> op.pad.w >> op.dilation.h >> op.dilation.w >> op.groups >> op.bias;
  if (!words)
    throw UsageError(
        "a convolution is 15 whole numbers: n c h w k r s, stride, pad and dilation by rows and columns, groups, and 1 "
        "or 0 for a bias");
  return conv;
}

std::vector<float> whole_numbers(std::int64_t count, const std::string& tensor) {
  std::vector<double> numbers(static_cast<std::size_t>(count));
  fill_uniform(numbers, hash(tensor));
  for (double& number : numbers) number = std::floor(7 * number) - 3;
  return {numbers.begin(), numbers.end()};
}

json ServedConvolution::pass() {
  Sample total = run();
  int runs = 1;
  if (total.seconds < sample_seconds) {
    total = {};  // the first run is not counted: it has woken the threads
    for (runs = 0; total.seconds < sample_seconds; ++runs) {
      const Sample one = run();
      total.seconds += one.seconds;
      total.cpu_seconds += one.cpu_seconds;
    }
  }
  json answer{{"runs", runs}};
  put(answer, std::string(to_string(pass_)), {total.seconds / runs, total.cpu_seconds / runs});
  return answer;
}

void put(json& answer, const std::string& what, const Sample& sample) {
  answer[what] = sample.seconds;
  answer[what + "_cpu"] = sample.cpu_seconds;
}

void serve(const json& greeting, const Open& open, Device* device) {
  std::map<std::string, std::unique_ptr<Served>> all;  // {words of a request after the command: the work}
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
