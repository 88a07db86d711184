#pragma once
// Engines that the heuristics propose for a graph, and execution plans made of them. The device is present, or known by
// its properties. All calls go through a table of functions: the library's or a test's.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "descriptor.h"
#include "kept_plans.h"
#include "lamina/cudnn_engines.h"

namespace lamina::cudnn::graph {

/// The words of a text, such as the names of knobs.
std::vector<std::string> words(std::string_view);

/// The proposals of mode A, then those of mode FALLBACK. Throws DeviceError if a call fails.
std::vector<CudnnEngine> proposals(const Target&, const Part& graph);

/// The engine with the notes that the library has on it. Throws Unsupported or DeviceError if there is no such engine.
CudnnEngine with_notes(const Target&, const PartRef& graph, CudnnEngine);

/// A plan of the engine with its knobs, finalized. Throws Unsupported or DeviceError if it does not finalize.
Descriptor make_plan(const Target&, const PartRef& graph, const CudnnEngine&);

/// A plan and what a pass needs to run it, or why there is none.
struct BuiltPlan : CudnnPlan {
  std::optional<Descriptor> plan{};
  HandleObject* handle = nullptr;       ///< handle of the device
  std::vector<std::int64_t> tensors{};  ///< ids of the graph's tensors
};

using PlanRef = std::shared_ptr<const BuiltPlan>;

/// The plan of an engine for a graph: loaded from the folder, or made and kept there. A device without properties keeps
/// nothing.
BuiltPlan build_plan(const Target&, const PartRef& graph, const CudnnEngine&, const KeptPlans&);

}  // namespace lamina::cudnn::graph
