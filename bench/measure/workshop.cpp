// What measurements share: backends by name, graphs, plans' options, and the rates that a backend reaches here.

#include "workshop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>

#include "io/interrupt.h"
#include "layers.h"
#include "stopwatch.h"

namespace lamina::bench {
namespace {

constexpr int product_batch = 2, product_channels = 512, product_image = 56, product_tries = 9;

/// By the processor's clock: there is no device yet whose timer could tell.
template <class Work>
void add_time(Sample& sum, Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = cpu_seconds();
  work();
  sum.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  sum.cpu_seconds += cpu_seconds() - cpu_start;
}

double measured_product(Backend& backend, DType dtype) {
  Graph graph("product");
  const Value x = graph.input({product_batch, product_channels, product_image, product_image});
  conv(x, "product", {.channels = product_channels, .kernel = 1, .bias = false});
  Plan plan(graph, backend, {.mode = Mode::inference, .dtype = dtype});
  Stopwatch stopwatch(backend.device());
  plan.forward();
  double best = std::numeric_limits<double>::infinity();
  // An emulated device takes seconds, beside which noise is little.
  for (int i = 0; i < product_tries && (i == 0 || (best < 1 && interrupted() == 0)); ++i)
    best = std::min(best, stopwatch.time([&] { plan.forward(); }).seconds);
  return 2.0 * static_cast<double>(graph.multiply_adds()) / best;
}

}  // namespace

const std::vector<std::string>& Workshop::backend_names() {
  if (!names_.empty()) return names_;
  if (!settings_.backends.empty()) {
    const std::vector<std::string> known = lamina::backend_names();
    for (const std::string& name : settings_.backends)  // one that is known but not built becomes rows that say so
      if (!name.starts_with("cudnn:") && std::find(known.begin(), known.end(), name) == known.end()) backend(name);
    return names_ = settings_.backends;
  }
  for (const std::string& name : lamina::backend_names()) {
    if (name == "cuda-host") continue;
    try {
      if (const std::string reason = available(name); !reason.empty())
        left_out_.push_back(reason);
      else
        names_.push_back(name);
    } catch (const Unsupported& error) {
      left_out_.emplace_back(error.what());
    }
  }
  if (names_.empty()) throw Unsupported(fmt::format("no backend can run here: {}", fmt::join(left_out_, "; ")));
  return names_;
}

Backend& Workshop::backend(const std::string& name) {
  std::shared_ptr<Backend>& made = backends_[name];
  if (made == nullptr) {
    BackendOptions options;
    options.threads = settings_.threads;
    options.memory_limit = settings_.memory_limit;
    options.choice_cache = settings_.choice_cache.string();
    options.instruction_set = settings_.instruction_set;
    // The directory is no part of a name, so that rows of two versions have equal ones.
    const bool own_cudnn = name == "cudnn" && !settings_.cudnn.empty();
    made = make_(own_cudnn ? "cudnn:" + settings_.cudnn : name, options);
  }
  return *made;
}

Backend& Workshop::usable_backend(const std::string& name) {
  if (const std::string reason = available(name); !reason.empty()) throw Unsupported(reason);
  return backend(name);
}

/// The first time is part of opening the backend: it may load the library.
std::string Workshop::available(const std::string& name) {
  Backend& made = backend(name);
  Opening& opening = openings_[name];
  if (opening.asked) return made.available();
  std::string reason;
  add_time(opening.sum, [&] { reason = made.available(); });
  opening.asked = true;
  return reason;
}

Sample Workshop::opened(const std::string& name) {
  Backend& made = usable_backend(name);
  Opening& opening = openings_[name];
  if (!opening.device) add_time(opening.sum, [&] { made.device().synchronize(); });
  opening.device = true;
  return opening.sum;
}

void Workshop::put(const std::string& name, std::shared_ptr<Backend> backend) { backends_[name] = std::move(backend); }

std::map<std::string, Choice> Workshop::saved_choices(const Case& c) {
  if (!choices_) choices_.emplace(settings_.choices);
  const Graph whole = graph(c);
  std::map<std::string, Choice> by_node;
  std::set<std::string> taken;  // one entry may serve several layers
  for (const DistinctLayer& layer : distinct_layers(whole)) {
    const ChoiceKey key =
        choice_key(backend(c.backend), spec_of(backend(c.backend), whole, layer.first(), c, true), settings_.choice);
    const std::optional<Algorithms> found = choices_->find(key);
    if (!found) continue;
    taken.insert(to_string(key));
    Choice choice = settings_.choice;
    choice.algorithm = *found;
    choice.max_error = no_bound;  // which a frontier held by measurement
    for (const Node* node : layer.nodes) by_node[node->name] = choice;
  }
  if (by_node.empty())
    throw UsageError(fmt::format(
        "{} has no choice for {} on {} here, with these limits, at batch {}; it holds {} others. Make them with "
        "lamina_bench frontier {} --choices_out={} and the same flags; those of --measure are taken with --measure "
        "--choice_cache",
        settings_.choices.string(), c.network, c.backend, c.batch, choices_->entries().size(), c.network,
        settings_.choices.string()));
  const std::string told =
      fmt::format("{}: {} of its {} choices hold for {} on {}, batch {}", settings_.choices.string(), taken.size(),
                  choices_->entries().size(), c.network, c.backend, c.batch);
  if (told_.insert(told).second) fmt::print(stderr, "{}\n", told);
  return by_node;
}

int Workshop::passes(const std::string& backend) const {
  if (settings_.passes != 0) return settings_.passes;
  return backend == "cuda" || backend.starts_with("cudnn") ? 10 : 3;
}

Graph Workshop::graph(const Case& c) const {
  return nets::build(c.network, {.batch = c.batch,
                                 .image = settings_.image,
                                 .width_divisor = settings_.width_divisor,
                                 .softmax = protocol_of(c, settings_).softmax});
}

Options Workshop::plan_options(const Case& c, Mode mode) {
  const nets::Protocol protocol = protocol_of(c, settings_);
  Options plan;
  plan.mode = mode;
  plan.dtype = c.dtype;
  plan.layout = c.layout;
  plan.fuse = settings_.fuse;
  plan.choice = settings_.choice;
  if (!settings_.choices.empty()) plan.choice_of = saved_choices(c);
  if (mode == Mode::training) {
    plan.keep = settings_.keep;
    plan.input_gradient = protocol.input_gradient;
    plan.accumulate_parameters = protocol.accumulate;
  }
  return plan;
}

const Peak& Workshop::peak(const std::string& backend_name, DType dtype) {
  const std::string key = fmt::format("{}/{}", backend_name, to_string(dtype));
  const auto known = peaks_.find(key);
  if (known != peaks_.end()) return known->second;
  Peak peak;
  try {
    peak.flops = backend(backend_name).peak_flops(dtype);
    peak.in_registers = peak.flops > 0;
  } catch (const Error&) {
    // A type or device that fails here fails its rows too, and there with its text.
  }
  if (!peak.in_registers) peak.flops = product_flops(backend_name, dtype);
  return peaks_[key] = peak;
}

double Workshop::product_flops(const std::string& backend_name, DType dtype) {
  const std::string key = fmt::format("{}/{}", backend_name, to_string(dtype));
  const auto known = products_.find(key);
  if (known != products_.end()) return known->second;
  double rate = 0;
  try {
    rate = measured_product(backend(backend_name), dtype);
  } catch (const Error&) {
    // As above.
  }
  return products_[key] = rate;
}

double Workshop::peak_bytes_per_second(const std::string& backend_name) {
  const bool on_gpu = backend_name == "cuda" || backend_name.starts_with("cudnn");
  const DeviceInfo::Kind kind = on_gpu ? DeviceInfo::Kind::gpu : DeviceInfo::Kind::processor;
  const auto known = memory_peaks_.find(kind);
  if (known != memory_peaks_.end()) return known->second;
  double peak = 0;
  try {
    for (const DeviceInfo& device : devices()) {
      if (device.kind != kind || device.number != 0) continue;
      const DeviceRates rates = measure(device, [] { return interrupted() != 0; });
      peak = std::max(rates.copy_bytes_per_second, rates.triad_bytes_per_second);
    }
  } catch (const Error&) {
    // As above.
  }
  return memory_peaks_[kind] = peak;
}

std::string Peak::description() const {
  return in_registers ? "multiply-adds in registers, on every thread" : Workshop::product_description();
}

std::string Workshop::product_description() {
  return fmt::format("fastest of at most {} forward passes of a 1x1 convolution, {} to {} channels, batch {}, {}x{}",
                     product_tries, product_channels, product_channels, product_batch, product_image, product_image);
}

std::vector<Shape> input_shapes(const Graph& graph, const Node& node) {
  std::vector<Shape> shapes;
  for (const int i : node.inputs) shapes.push_back(graph.nodes()[static_cast<std::size_t>(i)].shape);
  return shapes;
}

namespace {

void add(Cost& to, const Cost& more) {
  to.flops += more.flops;
  to.bytes += more.bytes;
}

}  // namespace

GraphCost graph_cost(const Graph& graph, DType dtype, bool input_gradient) {
  const std::vector<bool> wanted = wanted_gradients(graph, {.input_gradient = input_gradient});
  GraphCost sum;
  for (const Node& node : graph.nodes()) {
    if (node.inputs.empty()) continue;
    const std::vector<Shape> x = input_shapes(graph, node);
    add(sum.forward, cost(node.op, x, Pass::forward, dtype));
    if (!node.params.empty()) add(sum.backward, cost(node.op, x, Pass::backward_params, dtype));
    const bool wants_dx =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](int i) { return wanted[static_cast<std::size_t>(i)]; });
    if (wants_dx) add(sum.backward, cost(node.op, x, Pass::backward_data, dtype));
  }
  return sum;
}

GraphCost plan_cost(const Plan& plan) {
  GraphCost sum;
  for (std::size_t i = 0; i < plan.calls().size(); ++i)
    add(i < plan.forward_calls() ? sum.forward : sum.backward, plan.calls()[i].cost);
  return sum;
}

void draw(Device& device, const Tensor& tensor, std::uint64_t key) {
  std::vector<double> numbers(static_cast<std::size_t>(tensor.shape.image()));
  Tensor image = tensor;
  image.shape.n = 1;
  const std::int64_t between = tensor.layout == Layout::nchw ? tensor.pitch : tensor.pitch * tensor.shape.plane();
  for (std::int64_t n = 0; n < tensor.shape.n; ++n) {
    image.data = tensor.as<char>() + n * between * static_cast<std::int64_t>(size_of(tensor.dtype));
    fill_normal(numbers, key, static_cast<std::uint64_t>(n * tensor.shape.image()));
    upload(device, image, std::span<const double>(numbers));
  }
}

}  // namespace lamina::bench
