// The public class: a library, a device, and what it has for a unit's pass.

#include "lamina/cudnn_engines.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "kept_plans.h"
#include "lamina/error.h"
#include "lib/backends/common/lowering.h"
#include "lib/backends/common/unit_checks.h"
#include "lib/backends/cudnn/library/session.h"
#include "operations.h"
#include "plans.h"

namespace lamina {
namespace {

using namespace cudnn::graph;

/// Where units end: what the planner asks of a backend, and nothing else.
class Fusions final : public Backend {
 public:
  std::string_view name() const override { return "cudnn-graph"; }
  std::string available() const override { return "it plans only"; }
  std::string describe() override { return "cuDNN's graphs"; }
  Device& device() override { throw Unsupported("cudnn-graph: " + available()); }
  std::vector<std::string> algorithms(const Spec&, Pass) const override { return {}; }
  Lowered lower(const Spec&, const Choice&) override { throw Unsupported("cudnn-graph: " + available()); }
  bool fuses(const Spec& spec, const Node& next, int) const override {
    if (std::holds_alternative<Add>(next.op) && !reads_two_values(next)) return false;
    return holds_any<Conv, FullyConnected, BatchNorm, Add>(spec.op) && holds_any<BatchNorm, Add, Relu>(next.op) &&
           default_fusion(spec.op, spec.tail, spec.tail.size(), next.op, spec.mode);
  }
};

std::string key_of(const std::string& version, const std::string& properties, const Part& graph,
                   const CudnnEngine& engine) {
  const char* const tf32 = std::getenv("NVIDIA_TF32_OVERRIDE");
  std::string key = "cuDNN " + version + "\n" + properties + "\nNVIDIA_TF32_OVERRIDE " + (tf32 ? tf32 : "") + "\n" +
                    to_string(graph) + "\nengine " + std::to_string(engine.index);
  for (const CudnnEngine::Knob& knob : engine.knobs)
    key += " " + std::to_string(knob.number) + "=" + std::to_string(knob.value);
  return key;
}

}  // namespace

bool CudnnEngine::has(std::string_view note) const {
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

const std::vector<std::string>& cudnn_note_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all(std::begin(numerical_notes), std::end(numerical_notes));
    all.insert(all.end(), std::begin(behavior_notes), std::end(behavior_notes));
    return all;
  }();
  return names;
}

std::vector<PlannedUnit> cudnn_graph_units(const Graph& graph, const Options& options) {
  return planned_units(graph, Fusions(), options);
}

std::vector<Pass> cudnn_graph_passes(const Spec& spec) { return graph_passes(spec); }

std::string cudnn_graph(const Spec& spec, Pass pass) { return to_string(*operation_graph_of(spec, pass)); }

class CudnnEngines::Impl {
 public:
  Impl(const std::string& directory, const std::string& json)
      : claim(directory), library(directory), device(device_of(library, json)), properties(plan_properties(json)) {}

  static Properties device_of(const cudnn::Library& library, const std::string& json) {
    check_version(library.api());
    return {library.api(), json};
  }

  /// Call it after a call that makes the library open its parts.
  void check_parts() {
    if (!checked) cudnn::check_one_directory(library.api());
    checked = true;
  }

  cudnn::Claim claim;
  cudnn::Library library;
  Properties device;
  std::string properties;  ///< those that a plan depends on
  bool checked = false;    ///< whether all parts were checked to be of one directory; they open with the first answer
};

CudnnEngines::CudnnEngines(const std::string& directory, const std::string& device)
    : impl_(std::make_unique<Impl>(directory, device)) {}
CudnnEngines::~CudnnEngines() = default;

std::string CudnnEngines::version() const { return impl_->library.api().number(); }
std::string CudnnEngines::directory() const { return impl_->library.api().directory; }

std::vector<CudnnEngine> CudnnEngines::list(const Spec& spec, Pass pass) const {
  const cudnn::Api& api = impl_->library.api();
  std::vector<CudnnEngine> engines = proposals(api, impl_->device, make(api, *operation_graph_of(spec, pass)));
  impl_->check_parts();
  return engines;
}

CudnnPlan CudnnEngines::build(const Spec& spec, Pass pass, const CudnnEngine& engine,
                              const std::filesystem::path& folder) const {
  const cudnn::Api& api = impl_->library.api();
  if (!cudnn::at_least(api, 9, 11))
    throw LoadError("cuDNN " + api.number() + " makes no plan for a device that is absent; give cuDNN 9.11 or later");
  const PartRef graph = operation_graph_of(spec, pass);
  std::optional<KeptPlans> kept;
  if (!folder.empty()) kept.emplace(folder);
  const std::string key = kept ? key_of(version(), impl_->properties, *graph, engine) : std::string();
  CudnnPlan built;
  const auto take = [&](const Descriptor& plan, std::size_t bytes) {
    built.workspace_bytes = plan.int64(plan_workspace_bytes);
    built.bytes = bytes;
    impl_->check_parts();
  };
  if (const auto found = kept ? kept->find(key, built.complaint) : std::nullopt) {
    try {
      take(load_plan(api, impl_->device, *found), found->size());
      built.from_folder = true;
      return built;
    } catch (const DeviceError& error) {
      built.complaint = kept->file(key).string() + " is not taken: " + error.what();
    } catch (const Unsupported& error) {
      built.complaint = kept->file(key).string() + " is not taken: " + error.what();
    }
  }
  const Descriptor made = make(api, *graph);
  try {
    const Descriptor plan = make_plan(api, impl_->device, made, engine);
    const std::string json = plan.text(plan_json);
    take(plan, json.size());
    if (kept) kept->keep(key, json, built.complaint);
  } catch (const DeviceError& error) {
    built.refused = error.what();
  } catch (const Unsupported& error) {
    built.refused = error.what();
  }
  return built;
}

}  // namespace lamina
