// Networks by name: from the zoo, from a file, or of one layer. The configurations of a run, the graphs of networks,
// and the options and weights of their plans.

#include "session.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include "bench/machine/ranks.h"
#include "lamina/error.h"
#include "lamina/tuning.h"

namespace lamina::bench {
namespace {

Network of_zoo(const nets::Info& info) {
  return {.name = std::string(info.name),
          .source = std::string(info.source),
          .protocol = info.protocol,
          .image = info.image,
          .smallest_image = info.smallest_image};
}

Network of_file(const std::filesystem::path& file, const NetSettings& settings) {
  if (settings.image != 0 || settings.width_divisor != 1 || settings.softmax)
    throw UsageError(fmt::format(
        "--image, --width_divisor and --softmax change only built-in networks; {} is taken as it is", file.string()));
  return {.name = network_name(file), .source = "from " + file.string(), .file = file};
}

/// The library's message, with flags in place of the options that they set.
std::string by_flags(std::string said) {
  const auto replace_end = [&](std::string_view option, std::string_view flag) {
    if (said.ends_with(option)) said.replace(said.size() - option.size(), option.size(), flag);
  };
  replace_end("in OnnxOptions::extents", "by --onnx_extents=NAME=EXTENT[,...]");
  replace_end("in OnnxOptions::output", "by --onnx_output=NAME");
  replace_end("if an axis is the batch, name it in OnnxOptions::batch_axes", "give --batch=1");
  return said;
}

/// The given extents of axes that this file leaves open. The other given extents may belong to another file.
std::map<std::string, std::int64_t> extents_of(const std::filesystem::path& onnx, const OnnxOptions& settings) {
  std::map<std::string, std::int64_t> its;
  if (settings.extents.empty()) return its;
  for (const OnnxOpenExtent& open : onnx_open_extents(onnx))
    if (const auto given = settings.extents.find(open.name); given != settings.extents.end()) its.insert(*given);
  return its;
}

}  // namespace

std::vector<Config> configs(Backends& backends, const ConfigSettings& settings, const NetSettings& net,
                            const std::vector<std::string>& names) {
  if (settings.dtypes.size() > 1 || settings.layouts.size() > 1)
    throw UsageError("this command takes one --dtype and one --layout; `run` and `sweep` take several");
  std::vector<Config> all;
  for (const std::string& name : names) {
    const Network its = network(name, net);
    for (const std::string& backend : backends.names())
      for (const int batch : its.layer != nullptr ? std::vector<int>{its.layer->x.n} : settings.batches)
        all.push_back({its.name, backend, settings.dtypes.front(), settings.layouts.front(), batch});
  }
  return all;
}

std::string to_string(const Config& c) { return fmt::format("{} on {}, batch {}", c.network, c.backend, c.batch); }

void check_no_path(const std::string& name) {
  if (name.ends_with(".onnx") || name.find('/') != std::string::npos)
    throw UsageError(fmt::format("{} is no name of a network; a file is given by --onnx={}", name, name));
}

Network network(const std::string& name, const NetSettings& settings) {
  for (const std::filesystem::path& file : settings.onnx)
    if (network_name(file) == name) return of_file(file, settings);
  for (const Layer& layer : settings.layers)
    if (layer.name == name)
      return {.name = name, .source = "one layer", .protocol = {.input_gradient = true}, .layer = &layer};
  check_no_path(name);
  return of_zoo(nets::info(name));
}

std::vector<Network> networks(const NetSettings& settings) {
  std::vector<Network> all;
  for (const std::filesystem::path& file : settings.onnx) all.push_back(of_file(file, settings));
  if (all.empty())
    for (const nets::Info& info : nets::list()) all.push_back(of_zoo(info));
  return all;
}

OnnxModel read_network_file(const std::filesystem::path& onnx, int batch, const OnnxOptions& settings) {
  try {
    OnnxOptions its = settings;
    its.batch = batch, its.training = true, its.extents = extents_of(onnx, settings);
    OnnxModel model = read_onnx(onnx, its);
    for (const OnnxValue& input : model.inputs)
      if (const int images = model.graph.node(input.node).shape.n; !its.extents.empty() && images != batch)
        throw UsageError(fmt::format(
            "--onnx_extents gives {} a batch of {}, and it is read with a batch of {}: leave the batch out; "
            "--batch gives the number of images",
            onnx.string(), images, batch));
    static std::set<std::string> said;
    if (model.replaced_batch > 0 && said.insert(onnx.string()).second)
      fmt::print(stderr, "{} was exported with a batch of {}; it is taken with --batch={}\n", onnx.string(),
                 model.replaced_batch, batch);
    for (const std::string& note : model.notes)
      if (said.insert(onnx.string() + note).second) fmt::print(stderr, "{}: {}\n", onnx.string(), note);
    return model;
  } catch (const UsageError& error) {
    throw UsageError(by_flags(error.what()));
  }
}

bool leave_out_refused(NetSettings& settings, int batch) {
  const std::size_t named = settings.onnx.size();
  std::erase_if(settings.onnx, [&](const std::filesystem::path& file) {
    try {
      read_network_file(file, batch, settings.onnx_settings);
      return false;
    } catch (const Error& error) {
      fmt::print(stderr, "lamina_bench: left out: {}\n", error.what());
      return true;
    }
  });
  if (settings.onnx.empty()) throw Unsupported("no file of --onnx can be read");
  return settings.onnx.size() < named;
}

Graph graph_of(const Config& of_all, const NetSettings& settings) {
  Config c = of_all;
  c.batch = part_of(c.batch, settings.ranks);
  const Network its = network(c.network, settings);
  if (its.layer != nullptr) return its.layer->graph();
  if (its.file) return read_network_file(*its.file, c.batch, settings.onnx_settings).graph;
  return nets::build(c.network, {.batch = c.batch,
                                 .image = settings.image,
                                 .width_divisor = settings.width_divisor,
                                 .softmax = settings.softmax.value_or(its.protocol.softmax)});
}

Plans::Plans(NetSettings net, PlanSettings settings) : net_(std::move(net)), settings_(std::move(settings)) {
  if (settings_.options.choice.measure) settings_.options.tuner = make_tuner(settings_.choice_cache);
}

nets::Protocol Plans::protocol(const std::string& network) const {
  nets::Protocol protocol = bench::network(network, net_).protocol;
  protocol.softmax = net_.softmax.value_or(protocol.softmax);
  protocol.input_gradient = settings_.input_gradient.value_or(protocol.input_gradient);
  protocol.accumulate = settings_.accumulate.value_or(protocol.accumulate);
  return protocol;
}

TensorFile Plans::weights(const Config& c) const {
  const Network its = bench::network(c.network, net_);
  return its.file ? read_network_file(*its.file, c.batch, net_.onnx_settings).weights : TensorFile{};
}

Options Plans::options(const Config& c, Mode mode) const {
  Options plan = settings_.options;
  plan.mode = mode;
  plan.dtype = c.dtype;
  plan.layout = c.layout;
  if (mode == Mode::inference) {
    plan.keep = Keep::all;
  } else {
    const nets::Protocol its = protocol(c.network);
    plan.input_gradient = its.input_gradient;
    plan.accumulate_parameters = its.accumulate;
  }
  return plan;
}

Options MemoryPredictor::options() const {
  Options options = session.plans.options(config, mode);
  if (mode == Mode::training) options.optimiser = optimiser;
  return options;
}

MemoryReport MemoryPredictor::at(int batch) const {
  Config its = config;
  its.batch = batch;
  return predict_memory(session.plans.graph(its), session.backends.at(config.backend), options());
}

LargestBatch MemoryPredictor::largest_under(std::size_t limit) const {
  constexpr int largest_tried = 1 << 16;
  LargestBatch best;
  for (int too_large = largest_tried + 1; best.batch + 1 < too_large;) {
    const int batch = std::midpoint(best.batch, too_large);
    std::size_t bytes = std::numeric_limits<std::size_t>::max();
    try {
      bytes = at(batch).total();
    } catch (const ShapeError&) {  // the batch is too large for a shape
    }
    if (bytes <= limit)
      best = {batch, bytes, batch == largest_tried};
    else
      too_large = batch;
  }
  return best;
}

}  // namespace lamina::bench
