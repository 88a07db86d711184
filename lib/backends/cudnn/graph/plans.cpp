// Operation graph -> heuristics -> engine configurations -> properties of each engine, and plans. Graph and plan have
// the handle of a present device; an absent one is a descriptor that is made from text.

#include "plans.h"

#include <cstdlib>
#include <iterator>
#include <span>
#include <sstream>
#include <type_traits>

#include "lamina/error.h"

namespace lamina::cudnn::graph {
namespace {

/// Room for more than any version has.
constexpr std::size_t notes_room = 32, knobs_room = 64;

std::string name_of(std::string_view names, int number, const char* kind) {
  const std::vector<std::string> known = words(names);
  const auto place = static_cast<std::size_t>(number);
  return place < known.size() ? known[place] : std::string(kind) + " " + std::to_string(number);
}

void read_notes(const Descriptor& used, CudnnEngine& into) {
  for (const int note : used.enumerators(engine_numerical_notes, type_numerical_note, notes_room))
    into.notes.push_back(name_of(numerical_notes, note, "numerical note"));
  for (const int note : used.enumerators(engine_behavior_notes, type_behavior_note, notes_room))
    into.notes.push_back(name_of(behavior_notes, note, "behavior note"));
}

CudnnEngine described(const Descriptor& config, bool fallback) {
  const Descriptor used = std::move(config.descriptors(config_engine, engine, 1).at(0));
  CudnnEngine found{used.int64(engine_index), fallback, {}, {}, config.int64(config_workspace_bytes)};
  read_notes(used, found);
  for (const Descriptor& choice : config.descriptors(config_knob_choices, knob_choice, knobs_room)) {
    const std::vector<int> types = choice.enumerators(knob_choice_type, type_knob, 1);
    const int number = types.empty() ? 0 : types.front();
    found.knobs.push_back({name_of(knobs, number, "knob"), choice.int64(knob_choice_value), number});
  }
  return found;
}

Descriptor engine_of(const Api& api, const Target& device, const Descriptor& graph, const CudnnEngine& wanted) {
  Descriptor used(api, engine);
  used.set(engine_graph, {&graph});
  used.set(engine_index, std::span(&wanted.index, 1));
  device.tell(used, engine_device);
  used.finalize();
  return used;
}

Descriptor read_properties(const Api& api, const std::string& json) {
  check_version(api);
  Descriptor made(api, device_properties);
  try {
    made.set(device_json, type_char, static_cast<std::int64_t>(json.size()), json.data());
    made.finalize();
  } catch (const DeviceError& error) {
    if (!api.unopened.empty())
      throw LoadError(std::string(error.what()) + ". Parts of it did not open: " + api.unopened +
                      ". From 9.23 on it needs the driver's library, libcuda.so.1, to read a device's properties; on a "
                      "machine without a GPU a link of this name to lib64/stubs/libcuda.so of a CUDA toolkit will do");
    throw UsageError(std::string("cuDNN does not take these device properties: ") + error.what());
  }
  return made;
}

/// The result of `make`. If the library refuses it, there is none, and `why` has the reason.
template <class Make>
std::optional<std::invoke_result_t<Make>> attempt(const Make& make, std::string& why) {
  try {
    return make();
  } catch (const DeviceError& error) {
    why = error.what();
  } catch (const Unsupported& error) {
    why = error.what();
  }
  return std::nullopt;
}

/// The properties of a present device that a plan depends on; empty if the library does not tell them.
std::string properties_of(const Api& api, HandleObject* handle) {
  if (!at_least(api, 9, 8)) return {};
  std::string ignored;
  const auto told = [&] {
    Descriptor made(api, device_properties);
    made.set(device_handle, type_handle, 1, static_cast<const void*>(&handle));
    made.finalize();
    return plan_properties(made.text(device_json));
  };
  return attempt(told, ignored).value_or("");
}

std::string key_of(const Api& api, const Target& device, const Part& graph, const CudnnEngine& engine) {
  const char* const tf32 = std::getenv("NVIDIA_TF32_OVERRIDE");
  std::string key = "cuDNN " + api.number() + "\n" + device.properties() + "\nNVIDIA_TF32_OVERRIDE " +
                    (tf32 ? tf32 : "") + "\n" + to_string(graph) + "\nengine " + std::to_string(engine.index);
  for (const CudnnEngine::Knob& knob : engine.knobs)
    key += " " + std::to_string(knob.number) + "=" + std::to_string(knob.value);
  return key;
}

}  // namespace

std::vector<std::string> words(std::string_view text) {
  std::istringstream in{std::string(text)};
  return {std::istream_iterator<std::string>(in), {}};
}

void check_version(const Api& api) {
  if (!at_least(api, 9, 8))
    throw LoadError("cuDNN " + api.number() + (api.directory.empty() ? "" : " in " + api.directory) +
                    " is too old to describe a device that this machine does not have; give cuDNN 9.8 or later");
}

void check_makes_plans(const Api& api) {
  if (!at_least(api, 9, 11))
    throw LoadError("cuDNN " + api.number() + " makes no plan for a device that is absent; give cuDNN 9.11 or later");
}

Target::Target(const Api& api, const std::string& json)
    : made_(read_properties(api, json)), properties_(plan_properties(json)) {}
Target::Target(const Api& api, HandleObject* handle) : handle_(handle), properties_(properties_of(api, handle)) {}

void Target::tell(Descriptor& to, int properties_attribute, int handle_attribute) const {
  if (made_)
    to.set(properties_attribute, {&*made_});
  else if (handle_attribute != 0)
    to.set(handle_attribute, type_handle, 1, static_cast<const void*>(&handle_));
}

std::vector<CudnnEngine> proposals(const Api& api, const Target& device, const Descriptor& graph) {
  std::vector<CudnnEngine> engines;
  for (const int mode : {int{mode_a}, int{mode_fallback}}) {
    Descriptor heuristics(api, engine_heuristics);
    heuristics.set(heuristics_graph, {&graph});
    heuristics.set(heuristics_mode, type_heuristic_mode, 1, &mode);
    device.tell(heuristics, heuristics_device);
    try {
      heuristics.finalize();
    } catch (const Unsupported&) {
      continue;
    }
    for (const Descriptor& config : heuristics.descriptors(heuristics_results, engine_config))
      engines.push_back(described(config, mode == mode_fallback));
  }
  return engines;
}

CudnnEngine with_notes(const Api& api, const Target& device, const Descriptor& graph, CudnnEngine wanted) {
  read_notes(engine_of(api, device, graph, wanted), wanted);
  return wanted;
}

Descriptor make_plan(const Api& api, const Target& device, const Descriptor& graph, const CudnnEngine& wanted) {
  const Descriptor used = engine_of(api, device, graph, wanted);
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
  config.set(config_engine, {&used});
  if (!choices.empty()) config.set(config_knob_choices, choices);
  config.finalize();

  Descriptor plan(api, execution_plan);
  plan.set(plan_config, {&config});
  device.tell(plan, plan_device, plan_handle);
  plan.finalize();
  return plan;
}

Descriptor load_plan(const Api& api, const Target& device, const std::string& json) {
  Descriptor plan(api, execution_plan);
  plan.set(plan_json, type_char, static_cast<std::int64_t>(json.size()), json.data());
  device.tell(plan, plan_device, plan_handle);
  plan.finalize();
  return plan;
}

BuiltPlan build_plan(const Api& api, const Target& device, const Part& graph, const CudnnEngine& engine,
                     const KeptPlans& kept) {
  const bool keeps = !kept.folder().empty() && !device.properties().empty();
  BuiltPlan built;
  CudnnPlan& outcome = built.outcome;
  const std::string key = key_of(api, device, graph, engine);
  if (const auto found = keeps ? kept.find(key, outcome.complaint) : std::nullopt) {
    std::string why;
    built.plan = attempt([&] { return load_plan(api, device, *found); }, why);
    outcome.from_folder = built.plan.has_value();
    outcome.bytes = found->size();
    if (!built.plan) outcome.complaint = kept.file(key).string() + " is not taken: " + why;
  }
  if (!built.plan) {
    const Descriptor made = make(api, graph, device.handle());
    built.plan = attempt([&] { return make_plan(api, device, made, engine); }, outcome.refused);
    if (!built.plan) return built;
    const std::string json = keeps || device.handle() == nullptr ? built.plan->text(plan_json) : std::string();
    outcome.bytes = json.size();
    if (keeps) kept.keep(key, json, outcome.complaint);
  }
  outcome.workspace_bytes = built.plan->int64(plan_workspace_bytes);
  return built;
}

}  // namespace lamina::cudnn::graph
