// The public class: a library, a device, and the engines that the library has for a unit's pass.

#include "lamina/cudnn_engines.h"

#include <algorithm>
#include <utility>

#include "kept_plans.h"
#include "lamina/error.h"
#include "lib/backends/common/lowering.h"
#include "lib/backends/cudnn/library/session.h"
#include "operations.h"
#include "plans.h"

namespace lamina {
namespace {

using namespace cudnn::graph;

/// A backend for the planner alone: it says where units end, and runs none.
class Fusions final : public Backend {
 public:
  std::string_view name() const override { return "cudnn-graph"; }
  std::string available() const override { return "it plans only"; }
  std::string describe() override { return "cuDNN's graphs"; }
  Device& device() override { throw Unsupported("cudnn-graph: " + available()); }
  std::vector<std::string> algorithms(const Spec&, Pass) const override { return {}; }
  Lowered lower(const Spec&, const Choice&) override { throw Unsupported("cudnn-graph: " + available()); }
  bool fuses(const Spec& spec, const Node& next, int) const override {
    return joins_graph(spec, spec.tail.size(), next.op);
  }
  bool masks_dx(const Spec& spec, const Spec& reader) const override { return joins_gradient(spec, reader); }
};

}  // namespace

bool CudnnEngine::has(std::string_view note) const {
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

std::vector<PlannedUnit> cudnn_graph_units(const Graph& graph, const Options& options) {
  return planned_units(graph, Fusions(), options);
}

std::vector<std::pair<Spec, Pass>> cudnn_graphs(const Spec& spec) {
  Spec plain = spec;
  plain.masks_dx = false;
  std::vector<std::pair<Spec, Pass>> graphs;
  for (const Pass pass : graph_passes(spec)) graphs.emplace_back(plain, pass);
  if (spec.masks_dx) graphs.emplace_back(spec, Pass::backward_data);
  return graphs;
}

std::string cudnn_graph(const Spec& spec, Pass pass) { return to_string(*operation_graph_of(spec, pass)); }

class CudnnEngines::Impl {
 public:
  Impl(const std::string& directory, const std::string& json)
      : claim(directory), library(directory), device(library.api(), json) {}

  /// Call it after a call that makes the library open its parts.
  void check_parts() {
    if (!checked) cudnn::check_one_directory(library.api());
    checked = true;
  }

  cudnn::Claim claim;
  cudnn::Library library;
  Target device;
  bool checked = false;  ///< whether all parts were checked to be of one directory; they open with the first answer
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
  check_makes_plans(api);
  CudnnPlan outcome =
      build_plan(api, impl_->device, *operation_graph_of(spec, pass), engine, KeptPlans(folder)).outcome;
  impl_->check_parts();
  return outcome;
}

}  // namespace lamina
