#pragma once
// Engines that the heuristics propose for a graph, and execution plans made of them, for a device that is present, or
// known by its properties. All calls go through a table: the library's or a test's.

#include <optional>
#include <string>
#include <vector>

#include "descriptor.h"
#include "kept_plans.h"
#include "lamina/cudnn_engines.h"
#include "operations.h"

namespace lamina::cudnn::graph {

/// The words of a text, such as the names of knobs.
std::vector<std::string> words(std::string_view);

/// Throw LoadError for a cuDNN that is too old for an absent device: before 9.8 it does not answer about one, and
/// before 9.11 it makes no plans for one. The constructor of a Target by properties calls check_version().
void check_version(const Api&);
void check_makes_plans(const Api&);

/// A device, by its handle or its properties. Every call below needs one: without either the library crashes.
class Target {
 public:
  /// Throws UsageError if the library rejects the text, LoadError if it is too old or lacks a part to read the text.
  Target(const Api&, const std::string& json);
  Target(const Api&, HandleObject*);

  HandleObject* handle() const { return handle_; }  ///< null if the device is absent
  /// The properties that a plan depends on; empty where the library does not tell a handle's, as before 9.8.
  const std::string& properties() const { return properties_; }
  /// Tells a descriptor the device: by its properties or, if it has an attribute for that, by its handle.
  void tell(Descriptor& to, int properties_attribute, int handle_attribute = 0) const;

 private:
  HandleObject* handle_ = nullptr;
  std::optional<Descriptor> made_;
  std::string properties_;
};

/// The proposals of mode A, then those of mode FALLBACK. Throws DeviceError if a call fails.
std::vector<CudnnEngine> proposals(const Api&, const Target&, const Descriptor& graph);

/// The engine with the notes that the library has on it. Throws Unsupported or DeviceError if there is no such engine.
CudnnEngine with_notes(const Api&, const Target&, const Descriptor& graph, CudnnEngine);

/// A plan of the engine with its knobs, finalized. Throws Unsupported or DeviceError if it does not finalize.
Descriptor make_plan(const Api&, const Target&, const Descriptor& graph, const CudnnEngine&);

/// The plan that a text of plan_json describes, finalized. Throws as make_plan() does.
Descriptor load_plan(const Api&, const Target&, const std::string& json);

/// A plan, or why there is none.
struct BuiltPlan {
  std::optional<Descriptor> plan;
  CudnnPlan outcome;
};

/// The plan of an engine for a graph: loaded from the folder, or made and kept there. A device without properties keeps
/// nothing.
BuiltPlan build_plan(const Api&, const Target&, const Part& graph, const CudnnEngine&, const KeptPlans&);

}  // namespace lamina::cudnn::graph
