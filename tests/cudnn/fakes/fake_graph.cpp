// A fake of cuDNN's graph API. As in the library, the caller creates the descriptors that a query fills.

#include "tests/cudnn/fakes/fake_graph.h"

#include <algorithm>
#include <cstring>

#include "lib/backends/cudnn/graph/types.h"

namespace lamina::test {
namespace {

using namespace cudnn::graph;
using Object = FakeGraph::Object;

FakeGraph state;

/// The type and number of values of an attribute. A count of 0 means one or more.
struct Rule {
  int kind, attribute, type, count;
  bool needed = true;
};

std::vector<Rule> make_rules() {
  std::vector<Rule> rules = {{pointwise, pointwise_form, type_pointwise_mode, 1},
                             {pointwise, pointwise_compute_type, type_data_type, 1},
                             {convolution, convolution_compute_type, type_data_type, 1},
                             {convolution, convolution_form, type_convolution_mode, 1},
                             {convolution, convolution_spatial_dimensions, type_int64, 1},
                             {convolution, convolution_dilations, type_int64, 2},
                             {convolution, convolution_strides, type_int64, 2},
                             {convolution, convolution_pre_paddings, type_int64, 2},
                             {convolution, convolution_post_paddings, type_int64, 2},
                             {engine_heuristics, heuristics_graph, type_descriptor, 1},
                             {engine_heuristics, heuristics_mode, type_heuristic_mode, 1},
                             {engine_heuristics, heuristics_device, type_descriptor, 1, false},
                             {engine_config, config_engine, type_descriptor, 1},
                             {engine_config, config_knob_choices, type_descriptor, 0, false},
                             {execution_plan, plan_config, type_descriptor, 1, false},
                             {execution_plan, plan_json, type_char, 0, false},
                             {execution_plan, plan_device, type_descriptor, 1, false},
                             {execution_plan, plan_handle, type_handle, 1, false},
                             {knob_choice, knob_choice_type, type_knob, 1},
                             {knob_choice, knob_choice_value, type_int64, 1},
                             {operation_pointwise, operation_pointwise_form, type_descriptor, 1},
                             {operation_pointwise, operation_pointwise_x, type_descriptor, 1},
                             {operation_pointwise, operation_pointwise_b, type_descriptor, 1, false},
                             {operation_pointwise, operation_pointwise_y, type_descriptor, 1, false},
                             {operation_pointwise, operation_pointwise_dx, type_descriptor, 1, false},
                             {operation_pointwise, operation_pointwise_dy, type_descriptor, 1, false},
                             {operation_graph, graph_operations, type_descriptor, 0},
                             {operation_graph, graph_handle, type_handle, 1, false},
                             {variant_pack, pack_ids, type_int64, 0},
                             {variant_pack, pack_pointers, type_pointer, 0},
                             {variant_pack, pack_workspace, type_pointer, 1},
                             {tensor, tensor_data_type, type_data_type, 1},
                             {tensor, tensor_dimensions, type_int64, 4},
                             {tensor, tensor_strides, type_int64, 4},
                             {tensor, tensor_id, type_int64, 1},
                             {tensor, tensor_alignment, type_int64, 1},
                             {tensor, tensor_is_virtual, type_boolean, 1, false},
                             {tensor, tensor_is_by_value, type_boolean, 1, false},
                             {engine, engine_graph, type_descriptor, 1},
                             {engine, engine_index, type_int64, 1},
                             {engine, engine_device, type_descriptor, 1, false},
                             {resample, resample_form, type_resample_mode, 1},
                             {resample, resample_compute_type, type_data_type, 1},
                             {resample, resample_padding, type_padding_mode, 1},
                             {resample, resample_spatial_dimensions, type_int64, 1},
                             {operation_resample_forward, resample_forward_index, type_descriptor, 1, false},
                             {operation_resample_backward, resample_backward_index, type_descriptor, 1, false},
                             {operation_norm_forward, norm_forward_form, type_norm_mode, 1},
                             {operation_norm_forward, norm_forward_phase, type_norm_phase, 1},
                             {operation_norm_backward, norm_backward_form, type_norm_mode, 1},
                             {device_properties, device_json, type_char, 0, false},
                             {device_properties, device_handle, type_handle, 1, false}};
  for (const auto& [kind, first] : {std::pair{operation_forward, forward_alpha},
                                    {operation_backward_data, backward_data_alpha},
                                    {operation_backward_filter, backward_filter_alpha}})
    for (int i = 0; i <= result; ++i) rules.push_back({kind, first + i, i <= beta ? type_double : type_descriptor, 1});
  for (const int fraction : {resample_window, resample_strides, resample_pre_paddings, resample_post_paddings})
    rules.push_back({resample, fraction, type_fraction, 2});
  for (const int part : {resample_forward_form, resample_forward_x, resample_forward_y})
    rules.push_back({operation_resample_forward, part, type_descriptor, 1});
  for (const int part : {resample_backward_form, resample_backward_dx, resample_backward_dy})
    rules.push_back({operation_resample_backward, part, type_descriptor, 1});
  for (int part = norm_forward_x; part <= norm_forward_y; ++part)
    rules.push_back({operation_norm_forward, part, type_descriptor, 1});
  for (const int part : {norm_backward_x, norm_backward_mean, norm_backward_inverse, norm_backward_dy,
                         norm_backward_scale, norm_backward_dscale, norm_backward_dshift, norm_backward_dx})
    rules.push_back({operation_norm_backward, part, type_descriptor, 1});
  return rules;
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = make_rules();
  return all;
}

int wrong(const std::string& why) {
  state.last_error = why;
  return 2000;
}

bool fails() {
  state.strays += state.in_pass ? 1 : 0;
  return ++state.calls == state.failing_call;
}

const char* error_string(int status) { return status == 2000 ? "FAKE_BAD_PARAM" : "FAKE_OTHER"; }
void last_error(char* text, std::size_t bytes) { std::strncpy(text, state.last_error.c_str(), bytes); }

int create(int kind, void** object) {
  if (fails()) return state.failure;
  ++state.created;
  *object = new Object{kind};
  return 0;
}

int destroy(void* object) {
  state.strays += state.in_pass ? 1 : 0;
  ++state.destroyed;
  delete static_cast<Object*>(object);
  return 0;
}

bool has(const Object& object, int attribute) {
  return object.numbers.count(attribute) + object.scalars.count(attribute) + object.others.count(attribute) +
             object.pointers.count(attribute) >
         0;
}

/// The graphs of all made plans. A plan's text has the index of its graph.
std::vector<Object>& graphs() {
  static std::vector<Object> all;
  return all;
}

/// Whether the device is known, either by its properties or by the graph's handle.
bool has_device(const Object& object, int properties, const Object& graph) {
  return has(object, properties) != has(graph, graph_handle);
}

/// The serialised plan of a configuration: "plan of fake 9.19.0: engine 30 2=5 graph 0.".
std::string plan_text(const Object& config) {
  std::string text = "plan of fake 9.19.0: engine";
  for (const Object& used : config.others.at(config_engine))
    text += " " + std::to_string(used.numbers.at(engine_index).front());
  if (has(config, config_knob_choices))
    for (const Object& choice : config.others.at(config_knob_choices))
      text += " " + std::to_string(choice.numbers.at(knob_choice_type).front()) + "=" +
              std::to_string(choice.numbers.at(knob_choice_value).front());
  graphs().push_back(config.others.at(config_engine).front().others.at(engine_graph).front());
  return text + " graph " + std::to_string(graphs().size() - 1) + ".";
}

int finalize_plan(Object& plan) {
  if (has(plan, plan_device) == has(plan, plan_handle)) {
    state.crashed = true;
    return wrong("a plan without a device");
  }
  if (has(plan, plan_config) == !plan.text.empty()) return wrong("a plan of a configuration or of a text");
  if (plan.text.empty()) {
    const Object config = plan.others.at(plan_config).front();
    if (config.others.at(config_engine).front().numbers.at(engine_index).front() == state.refused_engine) return 3000;
    plan.text = plan_text(config);
    ++state.plans_made;
    return 0;
  }
  if (plan.text.rfind("plan of fake 9.19.0:", 0) != 0) return wrong("a plan of another version");
  if (plan.text.back() != '.') return wrong("not JSON");
  ++state.plans_loaded;
  return 0;
}

int finalize(void* pointer) {
  if (fails()) return state.failure;
  auto& object = *static_cast<Object*>(pointer);
  if (object.finalized) return wrong("finalized twice");
  for (const Rule& rule : rules())
    if (rule.kind == object.kind && rule.needed && !has(object, rule.attribute) && object.text.empty())
      return wrong("attribute " + std::to_string(rule.attribute) + " is missing");
  if (object.kind == engine && !has_device(object, engine_device, object.others.at(engine_graph).front()))
    return wrong("an engine without a device");
  if (object.kind == engine_heuristics &&
      !has_device(object, heuristics_device, object.others.at(heuristics_graph).front()))
    return wrong("heuristics without a device");
  if (object.kind == device_properties && has(object, device_handle)) object.text = R"({"driverVer": 13000})";
  if (object.kind == variant_pack && object.numbers.at(pack_ids).size() != object.pointers.at(pack_pointers).size())
    return wrong("a pack with other numbers of ids and addresses");
  if (object.kind == engine && object.numbers.at(engine_index).front() > 90) return wrong("no such engine");
  if (object.kind == knob_choice && object.numbers.at(knob_choice_value).front() > 90)
    return wrong("knob out of range");
  if (object.kind == execution_plan)
    if (const int status = finalize_plan(object); status != 0) return status;
  object.finalized = true;
  if (object.kind == tensor) state.tensors[object.numbers.at(tensor_id).front()] = object;
  state.last_of_kind[object.kind] = object;
  if (object.kind != engine_heuristics) return 0;
  const std::int64_t mode = object.numbers.at(heuristics_mode).front();
  state.modes.push_back(mode);
  return mode == state.refused_mode ? 3000 : 0;
}

int set(void* pointer, int attribute, int type, std::int64_t count, const void* elements) {
  if (fails()) return state.failure;
  auto& object = *static_cast<Object*>(pointer);
  const auto rule = std::find_if(rules().begin(), rules().end(), [&](const Rule& each) {
    return each.kind == object.kind && each.attribute == attribute;
  });
  if (rule == rules().end()) return wrong("no attribute " + std::to_string(attribute) + " of this kind");
  if (object.finalized) return wrong("set after finalize");
  if (rule->type != type || count < 1 || (rule->count > 0 && rule->count != count))
    return wrong("type or count of attribute " + std::to_string(attribute));
  const auto n = static_cast<std::size_t>(count);
  if (type == type_descriptor) {
    object.others[attribute].clear();
    for (std::size_t i = 0; i < n; ++i) {
      const Object& other = *static_cast<const Object* const*>(elements)[i];
      if (!other.finalized) return wrong("a descriptor that is not finalized");
      object.others[attribute].push_back(other);
    }
  } else if (type == type_int64 || type == type_fraction) {
    const auto* values = static_cast<const std::int64_t*>(elements);
    object.numbers[attribute].assign(values, values + (type == type_fraction ? 2 * n : n));
  } else if (type == type_handle || type == type_pointer) {
    const auto* values = static_cast<void* const*>(elements);
    object.pointers[attribute].assign(values, values + n);
  } else if (type == type_double) {
    object.scalars[attribute] = *static_cast<const double*>(elements);
  } else if (type == type_char) {
    object.text.assign(static_cast<const char*>(elements), n);
  } else if (type == type_boolean) {
    object.numbers[attribute] = {*static_cast<const bool*>(elements) ? 1 : 0};
  } else {
    const auto* values = static_cast<const int*>(elements);
    object.numbers[attribute].assign(values, values + n);
  }
  return 0;
}

/// The values of an attribute of a descriptor. If the values are descriptors, their contents.
std::vector<Object> held(const Object& object, int attribute) {
  const auto numbered = [](int kind, std::map<int, std::vector<std::int64_t>> numbers) {
    return Object{kind, true, std::move(numbers)};
  };
  if (attribute == heuristics_results) {
    const std::int64_t mode = object.numbers.at(heuristics_mode).front();
    return {numbered(engine_config, {{engine_index, {10 * mode}}, {config_workspace_bytes, {4096}}}),
            numbered(engine_config, {{engine_index, {10 * mode + 1}}, {config_workspace_bytes, {0}}})};
  }
  if (attribute == config_engine) return {numbered(engine, object.numbers)};
  return {numbered(knob_choice, {{knob_choice_type, {2}}, {knob_choice_value, {5}}}),
          numbered(knob_choice, {{knob_choice_type, {1000}}, {knob_choice_value, {-1}}})};
}

int get(void* pointer, int attribute, int type, std::int64_t room, std::int64_t* count, void* elements) {
  if (fails()) return state.failure;
  const auto& object = *static_cast<const Object*>(pointer);
  if (!object.finalized) return wrong("read before finalize");
  if (type == type_descriptor) {
    const std::vector<Object> found = held(object, attribute);
    *count = static_cast<std::int64_t>(found.size());
    for (std::size_t i = 0; i < found.size() && static_cast<std::int64_t>(i) < room; ++i)
      *static_cast<Object* const*>(elements)[i] = found[i];
    return 0;
  }
  if (type == type_char) {
    *count = static_cast<std::int64_t>(object.text.size());
    std::memcpy(elements == nullptr ? &state : elements, object.text.data(),
                elements == nullptr ? 0 : static_cast<std::size_t>(std::min(room, *count)));
    return 0;
  }
  std::vector<std::int64_t> values;
  if (attribute == engine_numerical_notes)
    values = object.numbers.at(engine_index).front() % 10 == 0 ? std::vector<std::int64_t>{0, 4}
                                                               : std::vector<std::int64_t>{};
  else if (attribute == engine_behavior_notes)
    values = {0, 99};
  else if (attribute == plan_workspace_bytes)
    values = {static_cast<std::int64_t>(FakeGraph::workspace_bytes)};
  else
    values = object.numbers.at(attribute);
  *count = static_cast<std::int64_t>(values.size());
  for (std::size_t i = 0; i < values.size() && static_cast<std::int64_t>(i) < room; ++i) {
    if (type == type_int64)
      static_cast<std::int64_t*>(elements)[i] = values[i];
    else
      static_cast<int*>(elements)[i] = static_cast<int>(values[i]);
  }
  return 0;
}

/// Collects the stored tensors of a graph, by id.
void find_stored(const Object& object, std::map<std::int64_t, Object>& found) {
  if (object.kind == tensor && !has(object, tensor_is_virtual)) found[object.numbers.at(tensor_id).front()] = object;
  for (const auto& [attribute, others] : object.others)
    for (const Object& other : others) find_stored(other, found);
}

int execute(cudnn::HandleObject*, void* plan_pointer, void* pack_pointer) {
  if (++state.calls == state.failing_call) return state.failure;
  const auto &plan = *static_cast<Object*>(plan_pointer), &pack = *static_cast<Object*>(pack_pointer);
  if (!plan.finalized || !pack.finalized || !has(plan, plan_handle)) return wrong("a plan or pack that cannot run");
  const Object& graph = graphs().at(std::stoul(plan.text.substr(plan.text.rfind(' ') + 1)));
  std::map<std::int64_t, Object> stored;
  find_stored(graph, stored);
  FakeGraph::Places places;
  for (std::size_t i = 0; i < pack.numbers.at(pack_ids).size(); ++i) {
    const std::int64_t id = pack.numbers.at(pack_ids)[i];
    void* const data = pack.pointers.at(pack_pointers)[i];
    if (stored.count(id) == 0 || !places.emplace(id, data).second || data == nullptr)
      return wrong("tensor " + std::to_string(id) + " is not of the graph, or twice in the pack, or null");
    if (!has(stored[id], tensor_is_by_value) &&
        reinterpret_cast<std::uintptr_t>(data) %
                static_cast<std::uintptr_t>(stored[id].numbers.at(tensor_alignment)[0]) !=
            0)
      return wrong("tensor " + std::to_string(id) + " is not aligned");
  }
  if (places.size() != stored.size()) return wrong("a tensor of the graph is not in the pack");
  void* const workspace = pack.pointers.at(pack_workspace)[0];
  if (workspace == nullptr) return wrong("no workspace");
  std::memset(workspace, 0xff, FakeGraph::workspace_bytes);
  ++state.executions;
  if (state.compute) state.compute(graph, places);
  return 0;
}

}  // namespace

FakeGraph& fake_graph() { return state; }

void serve_graphs(cudnn::Api& api) {
  state = FakeGraph{};
  api.GetLastErrorString = last_error;
  api.BackendCreateDescriptor = create;
  api.BackendDestroyDescriptor = destroy;
  api.BackendFinalize = finalize;
  api.BackendSetAttribute = set;
  api.BackendGetAttribute = get;
  api.BackendExecute = execute;
}

cudnn::Api fake_graph_api() {
  cudnn::Api api;
  api.version = 91900;
  api.GetErrorString = error_string;
  serve_graphs(api);
  return api;
}

}  // namespace lamina::test
