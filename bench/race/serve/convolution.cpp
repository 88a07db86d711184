// Single convolutions in a race.

#include "convolution.h"

#include <algorithm>
#include <span>
#include <sstream>

#include "bench/timing/stopwatch.h"
#include "lamina/error.h"
#include "lamina/lamina.h"
#include "lamina/nets.h"

namespace lamina::bench {
namespace {

using nlohmann::json;

constexpr double sample_seconds = 0.1;  // the clocks that show what neighbours used tick every 0.01 s

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
    const auto& calls = plan_.calls();
    return std::find_if(calls.begin(), calls.end(), [&](const Call& call) { return call.covers(pass_); })->algorithm;
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

std::vector<float> whole_numbers(std::int64_t count, const std::string& tensor) {
  std::vector<float> found(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (const char letter : tensor) state = 31 * state + static_cast<unsigned char>(letter);
  for (float& number : found) {
    state = 1664525 * state + 1013904223;  // a linear congruential generator; its high bits are its best
    number = static_cast<float>((state >> 16) % 7) - 3;
  }
  return found;
}

json ServedConvolution::pass() {
  Sample total = run();
  int runs = 1;
  if (total.seconds < sample_seconds) {
    total = {};  // the first run woke the threads
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

std::unique_ptr<Served> serve_convolution(Backend& backend, const RacedConvolution& conv, Pass pass,
                                          const Options& options) {
  return std::make_unique<Convolved>(backend, conv, pass, options);
}

}  // namespace lamina::bench
