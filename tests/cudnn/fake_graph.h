#pragma once
// A cuDNN graph API of a test's own: counts its calls, keeps what it was told, proposes two engines, fails where asked.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "backends/cudnn/library/api.h"

namespace lamina::test {

struct FakeGraph {
  struct Object {
    int kind;
    bool finalized = false;
    std::map<int, std::vector<std::int64_t>> numbers{};  ///< by attribute: integers, enumerations
    std::map<int, double> scalars{};
    std::map<int, const Object*> others{};
    std::string text{};
  };

  int calls = 0;          ///< of functions that return a status
  int failing_call = 0;   ///< that one fails, counted from 1; 0: none
  int failure = 2000;     ///< with this status
  int refused_mode = -1;  ///< heuristics of this mode answer "not supported"
  int created = 0, destroyed = 0;
  std::vector<std::int64_t> modes{};         ///< of heuristics, as they were finalized
  std::map<int, Object> last_of_kind{};      ///< as it was finalized last
  std::map<std::int64_t, Object> tensors{};  ///< by id
};

/// Of all tables below; the C functions find it here.
FakeGraph& fake_graph();

/// A table whose functions work on fake_graph(), which it resets.
cudnn::Api fake_graph_api();

}  // namespace lamina::test
