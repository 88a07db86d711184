// The child that `compare` asks for Lamina's passes, one at a time: one line in, one line of JSON out.
//   pass training|inference nchw|nhwc   runs a pass; answers its seconds by the wall and by the process's CPU clock
//   drop training|inference             gives back the memory of that mode
// usage: peer_worker NET BATCH THREADS [measure]

#include <ctime>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bottleneck_stack.h"
#include "lamina/lamina.h"
#include "lamina/nets.h"

namespace {

using nlohmann::json;

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// A network in one mode and layout, ready to be timed as the published tables timed it.
class Subject {
 public:
  Subject(const std::string& net, int batch, lamina::Backend& backend, lamina::Options options)
      : backend_(&backend), plan_(build(net, batch), backend, options) {
    run();  // warm-up
  }

  json run() {
    json sample;
    draw(plan_.input());
    if (plan_.options().mode == lamina::Mode::inference) {
      time(sample, "inference", [this] { plan_.forward(); });
      return sample;
    }
    time(sample, "forward", [this] { plan_.forward(); });
    draw(plan_.output_gradient());
    time(sample, "backward", [this] { plan_.backward(); });
    return sample;
  }

  static lamina::nets::Protocol protocol(const std::string& net) {
    if (net == "bottleneck_stack") return {.softmax = false, .input_gradient = true};
    return lamina::nets::info(net).protocol;
  }

 private:
  static lamina::Graph build(const std::string& net, int batch) {
    if (net == "bottleneck_stack") return peers::bottleneck_stack(batch);
    return lamina::nets::build(net, {.batch = batch, .softmax = protocol(net).softmax});
  }

  template <class Work>
  void time(json& sample, const std::string& what, const Work& work) {
    const auto timer = backend_->device().timer();
    const double cpu = cpu_seconds();
    timer->start();
    work();
    timer->stop();
    sample[what] = timer->seconds();
    sample[what + "_cpu"] = cpu_seconds() - cpu;
  }

  /// Fresh standard normal numbers, outside the timing.
  void draw(const lamina::Tensor& to) {
    std::vector<double> numbers(static_cast<std::size_t>(to.shape.count()));
    lamina::fill_normal(numbers, ++draws_);
    lamina::upload(backend_->device(), to, numbers);
  }

  lamina::Backend* backend_;
  lamina::Plan plan_;
  std::uint64_t draws_ = 0;
};

lamina::Mode mode_of(const std::string& name) {
  if (name == "training") return lamina::Mode::training;
  if (name == "inference") return lamina::Mode::inference;
  throw lamina::UsageError("no mode '" + name + "'; there are training and inference");
}

lamina::Layout layout_of(const std::string& name) {
  if (name == "nchw") return lamina::Layout::nchw;
  if (name == "nhwc") return lamina::Layout::nhwc;
  throw lamina::UsageError("no layout '" + name + "'; there are nchw and nhwc");
}

void serve(const std::string& net, int batch, int threads, bool measure) {
  const auto backend = lamina::make_backend("eigen", {.threads = threads});
  std::cout << json{{"backend", backend->describe()}, {"threads", threads}, {"measure", measure}}.dump() << std::endl;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Subject>> subjects;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command, mode, layout;
    words >> command >> mode >> layout;
    json answer = json::object();
    if (command == "pass") {
      auto& subject = subjects[{mode, layout}];
      if (!subject) {
        lamina::Options options{.mode = mode_of(mode), .layout = layout_of(layout)};
        options.choice.measure = measure;
        options.input_gradient = options.mode == lamina::Mode::training && Subject::protocol(net).input_gradient;
        options.accumulate_parameters = options.mode == lamina::Mode::training && Subject::protocol(net).accumulate;
        subject = std::make_unique<Subject>(net, batch, *backend, options);
      }
      answer = subject->run();
    } else if (command == "drop") {
      std::erase_if(subjects, [&](const auto& entry) { return entry.first.first == mode; });
    } else {
      throw lamina::UsageError("no command '" + command + "'; there are pass and drop");
    }
    std::cout << answer.dump() << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4 || argc > 5 || (argc == 5 && std::string(argv[4]) != "measure")) {
    std::cerr << "usage: peer_worker NET BATCH THREADS [measure]\n";
    return 2;
  }
  try {
    serve(argv[1], std::stoi(argv[2]), std::stoi(argv[3]), argc == 5);
  } catch (const std::exception& error) {
    std::cout << json{{"error", error.what()}}.dump() << std::endl;
    return 1;
  }
  return 0;
}
