// The child that `compare` asks for Lamina's passes, one at a time: one line in, one line of JSON out.
//   pass training|inference nchw|nhwc
//       runs a pass; answers its seconds by the wall and by the process's CPU clock
//   memory training|inference nchw|nhwc
//       makes what `pass` would run, and runs it twice; answers by how much the process grew at most meanwhile, and the
//       plan's size, in bytes, or why this system does not tell ("unsupported"). For a process of its own
//   drop training|inference   gives back the memory of that mode
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
#include "resident.h"

namespace {

using nlohmann::json;

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// A network in one mode and layout, ready to be timed as the published tables timed it.
class Subject {
 public:
  Subject(const std::string& net, int batch, lamina::Backend& backend, const lamina::Options& options)
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

  const lamina::Plan& plan() const { return plan_; }

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

  /// Fresh standard normal numbers, outside the timing; image by image, so that they take no memory to speak of.
  void draw(const lamina::Tensor& to) {
    std::vector<double> numbers(static_cast<std::size_t>(to.shape.image()));
    lamina::Tensor image = to;
    image.shape.n = 1;
    const std::int64_t between = to.layout == lamina::Layout::nchw ? to.pitch : to.pitch * to.shape.plane();
    ++draws_;
    for (int n = 0; n < to.shape.n; ++n) {
      image.data = to.as<float>() + n * between;
      lamina::fill_normal(numbers, draws_, static_cast<std::uint64_t>(n * to.shape.image()));
      lamina::upload(backend_->device(), image, numbers);
    }
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

/// The children's side of the protocol, for one network.
class Server {
 public:
  Server(std::string net, int batch, int threads, bool measure)
      : net_(std::move(net)),
        batch_(batch),
        measure_(measure),
        backend_(lamina::make_backend("eigen", {.threads = threads})) {
    std::cout << json{{"backend", backend_->describe()}, {"threads", threads}, {"measure", measure}}.dump()
              << std::endl;
  }

  json answer(const std::string& command, const std::string& mode, const std::string& layout) {
    if (command == "pass") return subject(mode, layout).run();
    if (command == "memory") return memory(mode, layout);
    if (command != "drop") throw lamina::UsageError("no command '" + command + "'; there are pass, memory and drop");
    std::erase_if(subjects_, [&](const auto& entry) { return entry.first.first == mode; });
    return json::object();
  }

 private:
  Subject& subject(const std::string& mode, const std::string& layout) {
    auto& subject = subjects_[{mode, layout}];
    if (subject) return *subject;
    lamina::Options options{.mode = mode_of(mode), .layout = layout_of(layout)};
    options.choice.measure = measure_;
    options.input_gradient = options.mode == lamina::Mode::training && Subject::protocol(net_).input_gradient;
    options.accumulate_parameters = options.mode == lamina::Mode::training && Subject::protocol(net_).accumulate;
    subject = std::make_unique<Subject>(net_, batch_, *backend_, options);
    return *subject;
  }

  json memory(const std::string& mode, const std::string& layout) {
    if (!peers::reset_peak())
      return json{{"unsupported", "this system does not set back a process's peak of resident memory"}};
    const auto before = peers::resident_bytes();
    Subject& made = subject(mode, layout);
    made.run();
    const auto peak = peers::peak_resident_bytes();
    if (!before || !peak) return json{{"unsupported", "this system does not tell a process's resident memory"}};
    return {{"peak_bytes", *peak - *before}, {"plan_bytes", made.plan().memory().total()}};
  }

  std::string net_;
  int batch_;
  bool measure_;
  std::unique_ptr<lamina::Backend> backend_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Subject>> subjects_;
};

void serve(const std::string& net, int batch, int threads, bool measure) {
  Server server(net, batch, threads, measure);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command, mode, layout;
    words >> command >> mode >> layout;
    std::cout << server.answer(command, mode, layout).dump() << std::endl;
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
