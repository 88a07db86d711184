// Operation graph -> heuristics -> engine configurations -> properties of each engine, and plans. None of these
// descriptors has a handle: the device is a descriptor made from text.

#include "plans.h"

#include <span>

#include "lamina/error.h"

namespace lamina::cudnn::graph {
namespace {

/// Room for more than any version has.
constexpr std::size_t notes_room = 32, knobs_room = 64;

template <std::size_t Count>
std::string name_of(const char* const (&known)[Count], int number, const char* kind) {
  const auto place = static_cast<std::size_t>(number);
  return number >= 0 && place < Count ? known[place] : std::string(kind) + " " + std::to_string(number);
}

CudnnEngine described(const Api& api, const Descriptor& config, bool fallback) {
  Descriptor used(api, engine);
  config.copy_to(config_engine, used);
  CudnnEngine found{used.int64(engine_index), fallback, {}, {}, config.int64(config_workspace_bytes)};
  for (const int note : used.enumerators(engine_numerical_notes, type_numerical_note, notes_room))
    found.notes.push_back(name_of(numerical_notes, note, "numerical note"));
  for (const int note : used.enumerators(engine_behavior_notes, type_behavior_note, notes_room))
    found.notes.push_back(name_of(behavior_notes, note, "behavior note"));
  for (const Descriptor& choice : config.descriptors(config_knob_choices, knob_choice, knobs_room)) {
    const int number = choice.enumerator(knob_choice_type, type_knob);
    found.knobs.push_back({name_of(knobs, number, "knob"), choice.int64(knob_choice_value), number});
  }
  return found;
}

void append(std::vector<CudnnEngine>& engines, const Api& api, const Descriptor& graph, const Properties& device,
            int mode) {
  Descriptor heuristics(api, engine_heuristics);
  heuristics.set(heuristics_graph, graph);
  heuristics.set(heuristics_mode, type_heuristic_mode, 1, &mode);
  heuristics.set(heuristics_device, device.descriptor());
  if (!heuristics.finalize_if_supported()) return;
  for (const Descriptor& config : heuristics.descriptors(heuristics_results, engine_config))
    engines.push_back(described(api, config, mode == mode_fallback));
}

Descriptor read_properties(const Api& api, const std::string& json) {
  Descriptor made(api, device_properties);
  try {
    made.set(device_json, type_char, static_cast<std::int64_t>(json.size()), json.data());
    made.finalize();
  } catch (const DeviceError& error) {
    if (!api.unopened.empty())
      throw LoadError(std::string(error.what()) + ". Parts of it did not open: " + api.unopened +
                      ". From 9.23 on it needs the driver's library, libcuda.so.1, to read a device's properties");
    throw UsageError(std::string("cuDNN does not take these device properties: ") + error.what());
  }
  return made;
}

}  // namespace

void check_version(const Api& api) {
  if (!at_least(api, 9, 8))
    throw LoadError("cuDNN " + api.number() + (api.directory.empty() ? "" : " in " + api.directory) +
                    " is too old to describe a device that this machine does not have; give cuDNN 9.8 or later");
}

Properties::Properties(const Api& api, const std::string& json) : made_(read_properties(api, json)) {}

std::vector<CudnnEngine> proposals(const Api& api, const Properties& device, const Descriptor& graph) {
  std::vector<CudnnEngine> engines;
  append(engines, api, graph, device, mode_a);
  append(engines, api, graph, device, mode_fallback);
  return engines;
}

Descriptor make_plan(const Api& api, const Properties& device, const Descriptor& graph, const CudnnEngine& wanted) {
  Descriptor used(api, engine);
  used.set(engine_graph, graph);
  used.set(engine_index, std::span(&wanted.index, 1));
  used.set(engine_device, device.descriptor());
  used.finalize();

  std::vector<Descriptor> made;
  std::vector<const Descriptor*> choices;
  made.reserve(wanted.knobs.size());
  for (const CudnnEngine::Knob& knob : wanted.knobs) {
    Descriptor& choice = made.emplace_back(api, knob_choice);
    choice.set(knob_choice_type, type_knob, 1, &knob.number);
    choice.set(knob_choice_value, std::span(&knob.value, 1));
    choice.finalize();
    choices.push_back(&choice);
  }
  Descriptor config(api, engine_config);
  config.set(config_engine, used);
  if (!choices.empty()) config.set(config_knob_choices, choices);
  config.finalize();

  Descriptor plan(api, execution_plan);
  plan.set(plan_config, config);
  plan.set(plan_device, device.descriptor());
  plan.finalize();
  return plan;
}

Descriptor load_plan(const Api& api, const Properties& device, const std::string& json) {
  Descriptor plan(api, execution_plan);
  plan.set(plan_json, type_char, static_cast<std::int64_t>(json.size()), json.data());
  plan.set(plan_device, device.descriptor());
  plan.finalize();
  return plan;
}

}  // namespace lamina::cudnn::graph
