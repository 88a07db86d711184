// Operation graph -> heuristics -> engine configurations -> properties of each engine. None of these descriptors has
// a handle: the device is a descriptor made from text.

#include "engines.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>

#include "lamina/error.h"
#include "session.h"

namespace lamina::cudnn::graph {
namespace {

/// Room for more than any version has.
constexpr std::size_t notes_room = 32, knobs_room = 64;

template <std::size_t Count>
std::string name_of(const char* const (&known)[Count], int number, const char* kind) {
  const auto place = static_cast<std::size_t>(number);
  return number >= 0 && place < Count ? known[place] : std::string(kind) + " " + std::to_string(number);
}

Descriptor make_tensor(const Api& api, std::int64_t id, const Shape& s, Layout layout) {
  const std::int64_t c = s.c, h = s.h, w = s.w;
  const std::array<std::int64_t, 4> extents = {s.n, c, h, w};
  const std::array<std::int64_t, 4> strides = layout == Layout::nchw
                                                  ? std::array<std::int64_t, 4>{c * h * w, h * w, w, 1}
                                                  : std::array<std::int64_t, 4>{c * h * w, 1, w * c, c};
  const std::int64_t alignment = 16;
  Descriptor made(api, tensor);
  made.set(tensor_data_type, type_data_type, 1, &data_float);
  made.set(tensor_dimensions, extents);
  made.set(tensor_strides, strides);
  made.set(tensor_id, std::span(&id, 1));
  made.set(tensor_alignment, std::span(&alignment, 1));
  made.finalize();
  return made;
}

Descriptor make_convolution(const Api& api, const Conv& conv) {
  const auto both = [](const Size& size) { return std::array<std::int64_t, 2>{size.h, size.w}; };
  const std::int64_t dimensions = 2;
  Descriptor made(api, convolution);
  made.set(convolution_compute_type, type_data_type, 1, &data_float);
  made.set(convolution_form, type_convolution_mode, 1, &cross_correlation);
  made.set(convolution_spatial_dimensions, std::span(&dimensions, 1));
  made.set(convolution_dilations, both(conv.dilation));
  made.set(convolution_strides, both(conv.stride));
  made.set(convolution_pre_paddings, both(conv.pad));
  made.set(convolution_post_paddings, both(conv.pad));
  made.finalize();
  return made;
}

/// The kind of a pass's operation, and the first of its attributes.
struct Operation {
  Kind kind;
  int attributes;
};

Operation operation_of(Pass pass) {
  switch (pass) {
    case Pass::forward: return {operation_forward, forward_attributes};
    case Pass::backward_data: return {operation_backward_data, backward_data_attributes};
    case Pass::backward_params: return {operation_backward_filter, backward_filter_attributes};
    case Pass::prepare:
    case Pass::recompute: break;
  }
  throw UsageError("cuDNN has no engines for the pass " + std::string(to_string(pass)) +
                   "; ask for forward, backward_data or backward_params");
}

CudnnEngine described(const Api& api, const Descriptor& config, bool fallback) {
  Descriptor used(api, engine);
  config.copy_to(config_engine, used);
  CudnnEngine found{used.int64(engine_index), fallback, {}, {}, config.int64(config_workspace_bytes)};
  for (const int note : used.enumerators(engine_numerical_notes, type_numerical_note, notes_room))
    found.notes.push_back(name_of(numerical_notes, note, "numerical note"));
  for (const int note : used.enumerators(engine_behavior_notes, type_behavior_note, notes_room))
    found.notes.push_back(name_of(behavior_notes, note, "behavior note"));
  for (const Descriptor& choice : config.descriptors(config_knob_choices, knob_choice, knobs_room))
    found.knobs.push_back(
        {name_of(knobs, choice.enumerator(knob_choice_type, type_knob), "knob"), choice.int64(knob_choice_value)});
  return found;
}

void append(std::vector<CudnnEngine>& engines, const Api& api, const Descriptor& graph, const Descriptor& device,
            int mode) {
  Descriptor heuristics(api, engine_heuristics);
  heuristics.set(heuristics_graph, graph);
  heuristics.set(heuristics_mode, type_heuristic_mode, 1, &mode);
  heuristics.set(heuristics_device, device);
  if (!heuristics.finalize_if_supported()) return;
  for (const Descriptor& config : heuristics.descriptors(heuristics_results, engine_config))
    engines.push_back(described(api, config, mode == mode_fallback));
}

}  // namespace

void check_version(const Api& api) {
  if (!at_least(api, 9, 8))
    throw LoadError("cuDNN " + api.number() + (api.directory.empty() ? "" : " in " + api.directory) +
                    " is too old to describe a device that this machine does not have; give cuDNN 9.8 or later");
}

Descriptor make_device(const Api& api, const std::string& json) {
  Descriptor made(api, device_properties);
  try {
    made.set(device_json, type_char, static_cast<std::int64_t>(json.size()), json.data());
    made.finalize();
  } catch (const DeviceError& error) {
    throw UsageError(std::string("cuDNN does not take these device properties: ") + error.what());
  }
  return made;
}

std::vector<CudnnEngine> list(const Api& api, const Descriptor& device, const Conv& conv, const Shape& x, Layout layout,
                              Pass pass) {
  const Operation kind = operation_of(pass);
  const Inferred inferred = infer(conv, {x});
  const Descriptor image_tensor = make_tensor(api, 1, x, layout);
  const Descriptor weights_tensor = make_tensor(api, 2, inferred.params.front(), layout);
  const Descriptor result_tensor = make_tensor(api, 3, inferred.y, layout);
  const Descriptor convolution_of = make_convolution(api, conv);

  const double one = 1, zero = 0;
  Descriptor operation(api, kind.kind);
  operation.set(kind.attributes + alpha, type_double, 1, &one);
  operation.set(kind.attributes + beta, type_double, 1, &zero);
  operation.set(kind.attributes + descriptor, convolution_of);
  operation.set(kind.attributes + weights, weights_tensor);
  operation.set(kind.attributes + image, image_tensor);
  operation.set(kind.attributes + result, result_tensor);
  operation.finalize();

  Descriptor graph(api, operation_graph);
  graph.set(graph_operations, operation);
  graph.finalize();

  std::vector<CudnnEngine> engines;
  append(engines, api, graph, device, mode_a);
  append(engines, api, graph, device, mode_fallback);
  return engines;
}

}  // namespace lamina::cudnn::graph

namespace lamina {

using namespace cudnn::graph;

bool CudnnEngine::has(std::string_view note) const {
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

const std::vector<std::string>& cudnn_note_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all(std::begin(numerical_notes), std::end(numerical_notes));
    all.insert(all.end(), std::begin(behavior_notes), std::end(behavior_notes));
    return all;
  }();
  return names;
}

class CudnnEngines::Impl {
 public:
  Impl(const std::string& directory, const std::string& json)
      : claim(directory), library(directory), device(device_of(library, json)) {}

  static Descriptor device_of(const cudnn::Library& library, const std::string& json) {
    check_version(library.api());
    return make_device(library.api(), json);
  }

  cudnn::Claim claim;
  cudnn::Library library;
  Descriptor device;
  bool checked = false;  ///< whether all parts were checked to be of one directory; they open with the first answer
};

CudnnEngines::CudnnEngines(const std::string& directory, const std::string& device)
    : impl_(std::make_unique<Impl>(directory, device)) {}
CudnnEngines::~CudnnEngines() = default;

std::string CudnnEngines::version() const { return impl_->library.api().number(); }
std::string CudnnEngines::directory() const { return impl_->library.api().directory; }

std::vector<CudnnEngine> CudnnEngines::list(const Conv& conv, const Shape& x, Layout layout, Pass pass) const {
  const cudnn::Api& api = impl_->library.api();
  std::vector<CudnnEngine> engines = cudnn::graph::list(api, impl_->device, conv, x, layout, pass);
  if (!impl_->checked) cudnn::check_one_directory(api);
  impl_->checked = true;
  return engines;
}

}  // namespace lamina
