// The child that `compare` asks for Lamina's passes, one at a time: one line in, one line of JSON out.
//   pass training|inference nchw|nhwc
//       runs a pass; answers its seconds by the wall and by the process's CPU clock
//   memory training|inference nchw|nhwc
//       makes what `pass` would run, and runs it twice; answers by how much the process grew at most meanwhile, and the
//       plan's size, in bytes, or why this system does not tell ("unsupported"). For a process of its own
//   open training|inference nchw|nhwc
//       makes what `pass` would run and warms it up; answers the plan's size in bytes, the seconds that making it took,
//       and the math of its calls
//   drop training|inference   gives back the memory of that mode
// usage: peer_worker NET BATCH THREADS [measure] [graph] [backend=NAME] [device=N] [math=strict|tf32]
//   measure: algorithms are picked by timing. graph: passes are recorded once and replayed. backend (default eigen), as
//   make_backend takes it: every other one counts as a GPU's, and each of its timed passes comes after one untimed, so
//   that clocks and caches are as passes back to back leave them

#include <chrono>
#include <cstddef>
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

constexpr int warm_up_passes = 5;  // of `open`; torch_rows.py has as many

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// What the child was asked to run, whatever the mode and layout.
struct Variant {
  std::string backend = "eigen";
  int device = 0;
  lamina::Math math = lamina::Math::strict;
  bool measure = false, graph = false;

  bool on_gpu() const { return backend != "eigen"; }
};

/// A network in one mode and layout, ready to be timed as the published tables timed it.
class Subject {
 public:
  Subject(const std::string& net, int batch, lamina::Backend& backend, const lamina::Options& options,
          const Variant& variant)
      : backend_(&backend), variant_(variant), plan_(build(net, batch), backend, options) {
    run();  // warm-up: libraries load their kernels, which a capture may not
    if (variant.graph) record();
  }

  json run() {
    json sample;
    draw(plan_.input());
    if (variant_.on_gpu()) {
      forward();
      if (training()) backward();
    }
    if (!training()) {
      time(sample, "inference", [this] { forward(); });
      return sample;
    }
    time(sample, "forward", [this] { forward(); });
    draw(plan_.output_gradient());
    time(sample, "backward", [this] { backward(); });
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

  bool training() const { return plan_.options().mode == lamina::Mode::training; }

  /// From here on passes are replayed. Throws Unsupported where the device records nothing.
  void record() {
    forward_ = backend_->device().capture([this] { plan_.forward(); });
    if (training()) backward_ = backend_->device().capture([this] { plan_.backward(); });
    run();
  }

  void forward() { forward_ ? forward_->launch() : plan_.forward(); }
  void backward() { backward_ ? backward_->launch() : plan_.backward(); }

  template <class Work>
  void time(json& sample, const std::string& what, const Work& work) {
    const auto timer = backend_->device().timer();
    backend_->device().synchronize();
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
  Variant variant_;
  lamina::Plan plan_;
  std::unique_ptr<lamina::Captured> forward_, backward_;  ///< null: the plan's own calls
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
  Server(std::string net, int batch, int threads, const Variant& variant)
      : net_(std::move(net)),
        batch_(batch),
        variant_(variant),
        backend_(lamina::make_backend(variant.backend, {.threads = threads, .device = variant.device})) {
    const json facts = {{"backend", backend_->describe()},
                        {"threads", threads},
                        {"measure", variant.measure},
                        {"graph", variant.graph},
                        {"math", to_string(variant.math)}};
    std::cout << facts.dump() << std::endl;
  }

  json answer(const std::string& command, const std::string& mode, const std::string& layout) {
    if (command == "pass") return subject(mode, layout).run();
    if (command == "memory") return memory(mode, layout);
    if (command == "open") return open(mode, layout);
    if (command != "drop")
      throw lamina::UsageError("no command '" + command + "'; there are pass, memory, open and drop");
    std::erase_if(subjects_, [&](const auto& entry) { return entry.first.first == mode; });
    return json::object();
  }

 private:
  Subject& subject(const std::string& mode, const std::string& layout) {
    auto& subject = subjects_[{mode, layout}];
    if (subject) return *subject;
    lamina::Options options{.mode = mode_of(mode), .layout = layout_of(layout)};
    options.choice.measure = variant_.measure;
    options.choice.math = variant_.math;
    options.input_gradient = options.mode == lamina::Mode::training && Subject::protocol(net_).input_gradient;
    options.accumulate_parameters = options.mode == lamina::Mode::training && Subject::protocol(net_).accumulate;
    subject = std::make_unique<Subject>(net_, batch_, *backend_, options, variant_);
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

  json open(const std::string& mode, const std::string& layout) {
    const auto start = std::chrono::steady_clock::now();
    Subject& made = subject(mode, layout);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    for (int i = 0; i < warm_up_passes; ++i) made.run();
    std::map<std::string, int> math;  // of how many calls
    for (const lamina::Call& call : made.plan().calls()) ++math[std::string(to_string(call.math))];
    return {{"plan_bytes", made.plan().memory().total()},
            {"made_seconds", seconds.count()},
            {"warm_up_passes", warm_up_passes},
            {"math_of_calls", math}};
  }

  std::string net_;
  int batch_;
  Variant variant_;
  std::shared_ptr<lamina::Backend> backend_;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Subject>> subjects_;
};

void serve(const std::string& net, int batch, int threads, const Variant& variant) {
  Server server(net, batch, threads, variant);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command, mode, layout;
    words >> command >> mode >> layout;
    std::cout << server.answer(command, mode, layout).dump() << std::endl;
  }
}

/// Of the words after the threads; UsageError for an unknown one.
Variant variant_of(const std::vector<std::string>& words) {
  Variant variant;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (word == "measure") {
      variant.measure = true;
    } else if (word == "graph") {
      variant.graph = true;
    } else if (key == "backend" && !value.empty()) {
      variant.backend = value;
    } else if (key == "device" && !value.empty() && value.find_first_not_of("0123456789") == std::string::npos) {
      variant.device = std::stoi(value);
    } else if (word == "math=strict" || word == "math=tf32") {
      variant.math = word == "math=tf32" ? lamina::Math::tf32 : lamina::Math::strict;
    } else {
      throw lamina::UsageError("no option '" + word + "'; there are measure, graph, backend=NAME, device=N, " +
                               "math=strict and math=tf32");
    }
  }
  return variant;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: peer_worker NET BATCH THREADS [measure] [graph] [backend=NAME] [device=N] "
                 "[math=strict|tf32]\n";
    return 2;
  }
  try {
    serve(argv[1], std::stoi(argv[2]), std::stoi(argv[3]), variant_of({argv + 4, argv + argc}));
  } catch (const lamina::Unsupported& error) {
    std::cout << json{{"error", error.what()}, {"refused", true}}.dump() << std::endl;
    return 1;
  } catch (const std::exception& error) {
    std::cout << json{{"error", error.what()}}.dump() << std::endl;
    return 1;
  }
  return 0;
}
