#pragma once
// Engines as the algorithms of a backend: the engines that each pass of a unit may run, and their steps.

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/backends/common/algorithms.h"
#include "lib/backends/cudnn/library/session.h"
#include "plans.h"

namespace lamina::cudnn::graph {

/// An engine that a step takes.
struct TakenEngine {
  std::string name;
  PlanRef plan{};
  bool deterministic = true;
  Math math = Math::strict;
};

/// The work of a step around its plan. It has own_bytes of the workspace, behind the plan's bytes; `own` is their
/// address.
struct Around {
  /// The address of a tensor by its id. Null: the tensor is not wanted, and the plan does not run.
  std::function<const void*(std::int64_t id, const Args&, void* own)> place;
  std::function<void(const Args&, void*own)> before{}, after{};
  std::size_t own_bytes = 0;
};

/// The step of an engine. Its kernel makes the plan's pack of addresses when it is bound.
Lowered::Step engine_step(std::vector<Pass>, const TakenEngine&, const Around&);

/// The address of a tensor, for the ids that mean the same in most ops.
const void* usual_place(std::int64_t id, const Args&, void* own);

/// Prefix of the names of engines. "engine:67" is the first configuration of engine 67 that the library proposes, and
/// "engine:67#2" the second. "engine:67:tile_size=5:stages=2" gives knobs, by name or number.
constexpr std::string_view engine_prefix = "engine:";

/// Number of proposals that the rule tries in order, and that are listed as algorithms.
constexpr std::size_t most_proposals = 8;

/// Makes the step of an engine that is taken.
using MakeStep = std::function<Lowered::Step(const TakenEngine&)>;

class UnitEngines {
 public:
  /// `properties` describes a device that may be absent, as JSON; empty: the device must be present. Plans are kept in
  /// `folder`, unless it is empty. Throws FileError as KeptPlans does.
  UnitEngines(std::string properties, const std::filesystem::path& folder)
      : json_(std::move(properties)), kept_(folder) {}

  /// The alternatives of a pass, best guess first. If there is no engine: one alternative, with a refusal. Engines that
  /// mask dx come before the others.
  std::vector<Alternative> alternatives(const Spec&, Pass, const Choice&, Session&, const MakeStep&);
  std::vector<std::string> names(const Spec&, Pass, Session&);

  /// Adds a complaint about the folder, if there is one, to the reason of a step, once.
  void complain(Lowered::Step&);
  std::string describe() const;

 private:
  /// What is known of a graph.
  struct Known {
    PartRef graph;
    std::vector<std::pair<std::string, CudnnEngine>> engines{};  ///< proposals by name, in the library's order
    std::map<std::string, PlanRef> built{};                      ///< plans by name of the engine
  };
  const Target& target(Session&);
  std::vector<Alternative> of_one_graph(const Spec&, Pass, const Choice&, Session&, const MakeStep&);
  Known& list(const Spec&, Pass, Session&);
  PlanRef build(Known&, const std::string& name, const CudnnEngine&, Session&);

  std::string json_;
  KeptPlans kept_;
  std::optional<Target> target_;
  std::map<std::string, Known> known_;    ///< graphs by their lines
  std::optional<std::string> complaint_;  ///< first complaint about the folder; empty once it was reported
};

/// Replaces the unit's step for a pass by the step of an engine, if the choice allows it. Returns whether it did.
bool offer_engines(Lowered&, const Spec&, Pass, const Choice&, Session&, const Around& = {usual_place});

}  // namespace lamina::cudnn::graph
