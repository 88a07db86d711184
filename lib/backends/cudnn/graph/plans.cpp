// Operation graph -> heuristics -> engine configurations -> properties of each engine, and plans.

#include "plans.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "operations.h"

namespace lamina::cudnn::graph {
namespace {

/// More notes and knobs than an engine has in any version.
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

PartRef engine_of(const PartRef& graph, const CudnnEngine& wanted) {
  return part(engine, {{engine_graph, graph}, {engine_index, wanted.index}});
}

/// Adds the ids of the tensors that a graph reads and writes, each once.
void add_stored(const Part& graph, std::vector<std::int64_t>& ids) {
  for (const auto& [attribute, value] : graph.attributes) {
    if (attribute == tensor_id && value.numbers[0] < first_virtual &&
        std::ranges::find(ids, value.numbers[0]) == ids.end())
      ids.push_back(value.numbers[0]);
    for (const PartRef& each : value.parts) add_stored(*each, ids);
  }
}

std::string key_of(const Target& device, const Part& graph, const CudnnEngine& engine) {
  const char* const tf32 = std::getenv("NVIDIA_TF32_OVERRIDE");
  std::string key = "cuDNN " + device.api().number() + "\n" + device.properties() + "\nNVIDIA_TF32_OVERRIDE " +
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

std::vector<CudnnEngine> proposals(const Target& device, const Part& graph) {
  const Descriptor made = make(device, graph);
  std::vector<CudnnEngine> engines;
  for (const int mode : {int{mode_a}, int{mode_fallback}}) {
    Descriptor heuristics(device.api(), engine_heuristics);
    heuristics.set(heuristics_graph, {&made});
    heuristics.set(heuristics_mode, type_heuristic_mode, 1, &mode);
    device.tell(heuristics, engine_heuristics);
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

CudnnEngine with_notes(const Target& device, const PartRef& graph, CudnnEngine wanted) {
  read_notes(make(device, *engine_of(graph, wanted)), wanted);
  return wanted;
}

Descriptor make_plan(const Target& device, const PartRef& graph, const CudnnEngine& wanted) {
  std::vector<PartRef> choices;
  for (const auto& [name, value, number] : wanted.knobs)
    choices.push_back(part(knob_choice, {{knob_choice_type, {type_knob, number}}, {knob_choice_value, value}}));
  Attributes config = {{config_engine, engine_of(graph, wanted)}};
  if (!choices.empty()) config.emplace_back(config_knob_choices, std::move(choices));
  return make(device, {execution_plan, {{plan_config, part(engine_config, std::move(config))}}});
}

BuiltPlan build_plan(const Target& device, const PartRef& graph, const CudnnEngine& engine, const KeptPlans& kept) {
  const bool keeps = !kept.folder().empty() && !device.properties().empty();
  BuiltPlan built;
  const std::string key = key_of(device, *graph, engine);
  if (const auto found = keeps ? kept.find(key, built.complaint) : std::nullopt) {
    std::string why;
    built.plan = attempt([&] { return make(device, {execution_plan, {{plan_json, *found}}}); }, why);
    built.from_folder = built.plan.has_value();
    built.bytes = found->size();
    if (!built.plan) built.complaint = kept.file(key).string() + " is not taken: " + why;
  }
  if (!built.plan) {
    built.plan = attempt([&] { return make_plan(device, graph, engine); }, built.refused);
    if (!built.plan) return built;
    const std::string json = keeps || device.handle() == nullptr ? built.plan->text(plan_json) : std::string();
    built.bytes = json.size();
    if (keeps) kept.keep(key, json, built.complaint);
  }
  built.workspace_bytes = static_cast<std::size_t>(built.plan->int64(plan_workspace_bytes));
  built.handle = device.handle();
  add_stored(*graph, built.tensors);
  return built;
}

}  // namespace lamina::cudnn::graph
