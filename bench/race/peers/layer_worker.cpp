// The child that `compare --layers` asks for single convolutions by Lamina's backend eigen, each as a plan of one node
// in training mode. Its variants are the layouts; see layer_server.h for the requests.
// usage: layer_worker THREADS [measure]      serves
//        layer_worker layers NET BATCH       lists a network's convolutions as JSON, in order, and ends

#include <algorithm>
#include <exception>
#include <iostream>
#include <optional>
#include <span>

#include "lamina/lamina.h"
#include "lamina/nets.h"
#include "layer_server.h"

namespace {

using nlohmann::json;

lamina::Graph alone(const peers::Convolution& conv) {
  lamina::Graph graph("layer");
  lamina::conv(graph.input(conv.x), "conv", conv.op);
  return graph;
}

lamina::Options options(lamina::Pass pass, const std::string& layout, bool measure) {
  if (layout != "nchw" && layout != "nhwc")
    throw lamina::UsageError("no layout '" + layout + "'; there are nchw and nhwc");
  lamina::Options options{.layout = layout == "nchw" ? lamina::Layout::nchw : lamina::Layout::nhwc};
  options.choice.measure = measure;
  options.input_gradient = pass == lamina::Pass::backward_data;
  return options;
}

class Subject final : public peers::TimedPass {
 public:
  Subject(lamina::Backend& backend, const peers::Convolution& conv, lamina::Pass pass, const lamina::Options& options)
      : pass_(pass), plan_(alone(conv), backend, options) {
    set(plan_.input(), "x");
    set(plan_.output_gradient(), "dy");
    for (const std::string& name : plan_.parameter_names())
      set(plan_.parameter(name), name == "conv.weight" ? "w" : "bias");
    plan_.parameters_changed();
  }

  std::string implementation() const override {
    const auto& calls = plan_.calls();
    return std::find_if(calls.begin(), calls.end(), [&](const lamina::Call& call) { return covered(call); })->algorithm;
  }

  /// The calls that cover the pass; a backward's other calls, and the forward it needs, run outside the timing.
  peers::Sample run() override {
    peers::Sample total;
    std::optional<peers::Stopwatch> running;
    const auto before = [&](std::size_t i) {
      if (running) {
        plan_.backend().device().synchronize();
        const peers::Sample one = running->elapsed();
        total.seconds += one.seconds;
        total.cpu_seconds += one.cpu_seconds;
        running.reset();
      }
      const std::size_t end = pass_ == lamina::Pass::forward ? plan_.forward_calls() : plan_.calls().size();
      if (i < end && covered(plan_.calls()[i])) running.emplace();
    };
    if (pass_ == lamina::Pass::forward) {
      plan_.forward(before);
    } else {
      plan_.forward();
      plan_.backward(before);
    }
    return total;
  }

  std::vector<float> result() override {
    std::vector<float> all;
    if (pass_ == lamina::Pass::forward) append(all, plan_.output());
    if (pass_ == lamina::Pass::backward_data) append(all, plan_.input_gradient());
    if (pass_ == lamina::Pass::backward_params)
      for (const std::string& name : plan_.parameter_names()) append(all, plan_.parameter_gradient(name));
    return all;
  }

 private:
  bool covered(const lamina::Call& call) const {
    return std::find(call.passes.begin(), call.passes.end(), pass_) != call.passes.end();
  }

  void set(const lamina::Tensor& to, const std::string& tensor) {
    lamina::upload(plan_.backend().device(), to, std::span<const float>(peers::numbers(to.shape.count(), tensor)));
  }

  void append(std::vector<float>& all, const lamina::Tensor& tensor) {
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.count()));
    lamina::download(plan_.backend().device(), std::span<float>(values), tensor);
    all.insert(all.end(), values.begin(), values.end());
  }

  lamina::Pass pass_;
  lamina::Plan plan_;
};

json list_layers(const std::string& net, int batch) {
  const lamina::nets::Protocol protocol = lamina::nets::info(net).protocol;
  const lamina::Graph graph = lamina::nets::build(net, {.batch = batch});
  json layers = json::array();
  for (const lamina::Node& node : graph.nodes()) {
    const auto* op = std::get_if<lamina::Conv>(&node.op);
    if (op == nullptr) continue;
    const lamina::Node& x = graph.nodes()[static_cast<std::size_t>(node.inputs.front())];
    const bool of_image = std::holds_alternative<lamina::Input>(x.op);
    layers.push_back({{"name", node.name},
                      {"conv", peers::spell({x.shape, *op})},
                      {"backward_data", !of_image || protocol.input_gradient}});
  }
  return layers;
}

void serve(int threads, bool measure) {
  const auto backend = lamina::make_backend("eigen", {.threads = threads});
  peers::serve({{"backend", backend->describe()}, {"threads", threads}, {"measure", measure}},
               [&](const peers::Convolution& conv, lamina::Pass pass, const std::string& layout) {
                 return std::make_unique<Subject>(*backend, conv, pass, options(pass, layout, measure));
               });
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 3 && words[0] == "layers") {
      std::cout << list_layers(words[1], std::stoi(words[2])).dump() << std::endl;
    } else if (words.size() == 1 || (words.size() == 2 && words[1] == "measure")) {
      serve(std::stoi(words[0]), words.size() == 2);
    } else {
      std::cerr << "usage: layer_worker THREADS [measure]\n       layer_worker layers NET BATCH\n";
      return 2;
    }
  } catch (const std::exception& error) {
    std::cout << json{{"error", error.what()}}.dump() << std::endl;
    return 1;
  }
  return 0;
}
