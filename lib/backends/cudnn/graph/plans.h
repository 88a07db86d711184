#pragma once
// Engines that the heuristics propose for a graph, and execution plans made of them, for a device that is known by its
// properties. Through a table: the library's or a test's.

#include <string>
#include <vector>

#include "descriptor.h"
#include "lamina/cudnn_engines.h"

namespace lamina::cudnn::graph {

/// Throws LoadError for a version before 9.8, which can only answer about a present device.
void check_version(const Api&);

/// A device by its properties. Every call below needs one: without properties or a handle the library crashes.
class Properties {
 public:
  /// Throws UsageError if the library rejects the text, LoadError if it lacks a part of itself to read it.
  Properties(const Api&, const std::string& json);
  const Descriptor& descriptor() const { return made_; }

 private:
  Descriptor made_;
};

/// The proposals of mode A, then those of mode FALLBACK. Throws DeviceError if a call fails.
std::vector<CudnnEngine> proposals(const Api&, const Properties&, const Descriptor& graph);

/// A plan of the engine with its knobs, finalized. Throws Unsupported or DeviceError where it does not finalize.
Descriptor make_plan(const Api&, const Properties&, const Descriptor& graph, const CudnnEngine&);

/// The plan that a text of plan_json describes, finalized. Throws as make_plan() does.
Descriptor load_plan(const Api&, const Properties&, const std::string& json);

}  // namespace lamina::cudnn::graph
