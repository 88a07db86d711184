// The public class: a library, a device, and the engines that the library has for a unit's pass.

#include "lamina/cudnn_engines.h"

#include <algorithm>
#include <utility>

#include "backend.h"
#include "lib/backends/cudnn/graph/operations.h"

namespace lamina {

using namespace cudnn::graph;  // NOLINT(google-build-using-namespace): this folder's own

bool CudnnEngine::has(std::string_view note) const {
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

std::vector<PlannedUnit> cudnn_graph_units(const Graph& graph, const Options& options) {
  if (options.choice.algorithm != Choice{}.algorithm || !options.choice_of.empty())
    throw UsageError("cudnn_graph_units: where units end does not depend on named algorithms; leave them out");
  // The planner asks this backend where units end and which tensors have gaps. This needs no device and no library.
  const auto backend = cudnn::make_backend("cudnn-graph", nullptr, nullptr, std::make_unique<UnitEngines>("", ""));
  return planned_units(graph, *backend, options);
}

std::vector<std::pair<Spec, Pass>> cudnn_graphs(const Spec& spec) {
  Spec plain = spec;
  plain.masks_dx = false;
  std::vector<std::pair<Spec, Pass>> graphs = {{plain, Pass::forward}};
  if (spec.mode == Mode::training && has_pass(spec.op, Pass::backward_params))
    graphs.emplace_back(plain, Pass::backward_params);
  if (spec.mode == Mode::training && !holds<BatchNorm>(spec.op) && std::ranges::count(spec.wants_dx, true) > 0)
    graphs.emplace_back(plain, Pass::backward_data);
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
  bool checked = false;  ///< whether it is known that all parts are of one directory; the first answer opens them
};

CudnnEngines::CudnnEngines(const std::string& directory, const std::string& device)
    : impl_(std::make_unique<Impl>(directory, device)) {}
CudnnEngines::~CudnnEngines() = default;

std::string CudnnEngines::version() const { return impl_->library.api().number(); }
std::string CudnnEngines::directory() const { return impl_->library.api().directory; }

std::vector<CudnnEngine> CudnnEngines::list(const Spec& spec, Pass pass) const {
  std::vector<CudnnEngine> engines = proposals(impl_->device, *operation_graph_of(spec, pass));
  impl_->check_parts();
  return engines;
}

CudnnPlan CudnnEngines::build(const Spec& spec, Pass pass, const CudnnEngine& engine,
                              const std::filesystem::path& folder) const {
  check_version(impl_->library.api(), true);
  CudnnPlan built = build_plan(impl_->device, operation_graph_of(spec, pass), engine, KeptPlans(folder));
  impl_->check_parts();
  return built;
}

}  // namespace lamina
