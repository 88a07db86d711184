// A fake of cuDNN's graph API. Configurations, engines and knob choices are filled as the library fills them:
// into descriptors that the caller made.

#include "tests/cudnn/fakes/fake_graph.h"

#include <cstring>

#include "lib/backends/cudnn/library/graph_types.h"

namespace lamina::test {
namespace {

using namespace cudnn::graph;
using Object = FakeGraph::Object;

FakeGraph state;

bool fails() { return ++state.calls == state.failing_call; }

const char* error_string(int status) { return status == 2000 ? "FAKE_BAD_PARAM" : "FAKE_OTHER"; }
void last_error(char* text, std::size_t bytes) { std::strncpy(text, "what the fake has to say", bytes); }

int create(int kind, void** object) {
  if (fails()) return state.failure;
  ++state.created;
  *object = new Object{kind};
  return 0;
}

int destroy(void* object) {
  ++state.destroyed;
  delete static_cast<Object*>(object);
  return 0;
}

int finalize(void* pointer) {
  if (fails()) return state.failure;
  auto& object = *static_cast<Object*>(pointer);
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
  const auto n = static_cast<std::size_t>(count);
  if (type == type_descriptor) {
    object.others[attribute] = *static_cast<const Object* const*>(elements);
    if (!object.others[attribute]->finalized) return 2000;
  } else if (type == type_int64) {
    const auto* values = static_cast<const std::int64_t*>(elements);
    object.numbers[attribute].assign(values, values + n);
  } else if (type == type_double) {
    object.scalars[attribute] = *static_cast<const double*>(elements);
  } else if (type == type_char) {
    object.text.assign(static_cast<const char*>(elements), n);
  } else {
    const auto* values = static_cast<const int*>(elements);
    object.numbers[attribute].assign(values, values + n);
  }
  return 0;
}

/// The contents of this attribute of a descriptor; for attributes that hold descriptors, the contents of each.
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
  if (type == type_descriptor) {
    const std::vector<Object> found = held(object, attribute);
    *count = static_cast<std::int64_t>(found.size());
    for (std::size_t i = 0; i < found.size() && static_cast<std::int64_t>(i) < room; ++i)
      *static_cast<Object* const*>(elements)[i] = found[i];
    return 0;
  }
  std::vector<std::int64_t> values;
  if (attribute == engine_numerical_notes)
    values = object.numbers.at(engine_index).front() % 10 == 0 ? std::vector<std::int64_t>{0, 4}
                                                               : std::vector<std::int64_t>{};
  else if (attribute == engine_behavior_notes)
    values = {0, 99};
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

}  // namespace

FakeGraph& fake_graph() { return state; }

cudnn::Api fake_graph_api() {
  state = FakeGraph{};
  cudnn::Api api;
  api.version = 91900;
  api.GetErrorString = error_string;
  api.GetLastErrorString = last_error;
  api.BackendCreateDescriptor = create;
  api.BackendDestroyDescriptor = destroy;
  api.BackendFinalize = finalize;
  api.BackendSetAttribute = set;
  api.BackendGetAttribute = get;
  return api;
}

}  // namespace lamina::test
