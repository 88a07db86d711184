#pragma once
// A fake of cuDNN's graph API. It counts calls, keeps their arguments, proposes two engines in each mode, makes, loads
// and executes plans, and fails on request. It is as strict as the library: an attribute has one kind, type and count,
// is set before finalize and read after it. All needed attributes must be set. A variant pack must have exactly the
// tensors of its graph, aligned as declared. A plan overwrites its workspace.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/backends/cudnn/library/api.h"

namespace lamina::test {

struct FakeGraph {
  struct Object {
    int kind;
    bool finalized = false;
    std::map<int, std::vector<std::int64_t>> numbers{};  ///< integers and enumerations, by attribute
    std::map<int, double> scalars{};
    std::map<int, std::vector<Object>> others{};  ///< copies of descriptors, made when they were set
    std::map<int, std::vector<void*>> pointers{};
    std::string text{};
  };
  using Places = std::map<std::int64_t, void*>;
  static constexpr std::size_t workspace_bytes = 8192;

  int calls = 0;                     ///< calls of functions that can fail
  int failing_call = 0;              ///< number of the call that fails, from 1; 0: none
  int failure = 2000;                ///< status of the failing call
  int refused_mode = -1;             ///< mode whose heuristics answer "not supported"
  std::int64_t refused_engine = -1;  ///< engine whose plans do not finalize
  bool crashed = false;              ///< whether a plan without a device was finalized: the library would crash
  std::string last_error = "what the fake has to say";
  int created = 0, destroyed = 0;
  int plans_made = 0, plans_loaded = 0, executions = 0;
  bool in_pass = false;  ///< whether a pass runs: then each call but execute is a stray
  int strays = 0;
  /// Computes a graph at the addresses of its tensors. If it is empty, nothing is computed.
  std::function<void(const Object& graph, const Places&)> compute{};
  std::vector<std::int64_t> modes{};         ///< modes of heuristics, in the order of their finalize calls
  std::map<int, Object> last_of_kind{};      ///< object of each kind that was finalized last
  std::map<std::int64_t, Object> tensors{};  ///< finalized tensors, by id
};

/// The state of the fake. All tables of fake_graph_api() share it.
FakeGraph& fake_graph();

/// Resets fake_graph() and sets the graph API's functions in a table.
void serve_graphs(cudnn::Api&);

/// A table with only the graph API's functions.
cudnn::Api fake_graph_api();

}  // namespace lamina::test
