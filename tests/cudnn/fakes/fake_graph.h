#pragma once
// A fake of cuDNN's graph API: counts its calls, keeps their arguments, proposes two engines of each mode, makes, loads
// and executes plans, fails on request. It is as strict as the library. An attribute has one kind, type and count. It
// is set before finalize, and read after it. All needed attributes are set. A variant pack has the tensors of its
// graph, no more and no fewer, aligned as declared. A plan that runs destroys what was in its workspace.

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
    std::map<int, std::vector<Object>> others{};  ///< descriptors, as they were when they were set
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
  bool in_pass = false;  ///< whether calls other than execute are strays
  int strays = 0;
  /// Computes what a graph says, at the addresses of its tensors. Unset: nothing is computed.
  std::function<void(const Object& graph, const Places&)> compute{};
  std::vector<std::int64_t> modes{};         ///< modes of heuristics, as they were finalized
  std::map<int, Object> last_of_kind{};      ///< object of each kind that was finalized last
  std::map<std::int64_t, Object> tensors{};  ///< finalized tensors, by id
};

/// The one state of all tables of fake_graph_api().
FakeGraph& fake_graph();

/// Gives a table functions that work on fake_graph(), which it resets.
void serve_graphs(cudnn::Api&);

/// A table of these functions alone.
cudnn::Api fake_graph_api();

}  // namespace lamina::test
