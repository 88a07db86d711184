#pragma once
// Queries to cuDNN's graph interface about a unit of work on a given device, which may be absent. The answers are the
// engines that cuDNN's heuristics propose, ranked, with notes, and the execution plans of engines. Needs cuDNN 9.8 or
// later (9.11 for plans) but no GPU. Engines that are compiled at run time need the driver's library, libcuda.so.1.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lamina/api.h"
#include "lamina/plan.h"

namespace lamina {

/// One way of running a graph that the heuristics propose: an engine with values for its knobs.
struct CudnnEngine {
  struct Knob {
    std::string name;  ///< "tile_size"; "knob 47" for a knob that this library does not know
    std::int64_t value;
    int number;  ///< cuDNN's number of the knob
    bool operator==(const Knob&) const = default;
  };

  std::int64_t index;              ///< number of the engine: stable within one version of cuDNN only
  bool fallback;                   ///< whether it is from the fallback list, which should work but may be slow
  std::vector<std::string> notes;  ///< "tensor_core", "nondeterministic", ...; "numerical note 99" for an unknown one
  std::vector<Knob> knobs;
  std::int64_t workspace_bytes;  ///< workspace in bytes, as the library states it for this configuration

  LAMINA_API bool has(std::string_view note) const;
  /// Whether it computes in full f32: no tensor cores, unrounded inputs. PyTorch uses only such engines without TF32.
  bool strict() const { return !has("tensor_core") && !has("down_convert_inputs"); }
};

/// The outcome of building an execution plan.
struct CudnnPlan {
  std::string refused{};            ///< reason why the plan cannot be finalised, in the library's words; empty: it can
  std::size_t workspace_bytes = 0;  ///< workspace of the plan; the configuration's may be an estimate
  std::size_t bytes = 0;            ///< length of the serialised plan
  bool from_folder = false;         ///< whether it was loaded, not made
  std::string complaint{};          ///< error of the folder or the file; the plan was then made without the folder
};

/// The units of a plan whose work cuDNN's graphs would do: batch norm with Add and ReLU, products and sums with ReLU.
/// In inference a batch norm is folded into the convolution before it. f64 has no graphs: its units are those of the
/// backend cudnn. Throws what planned_units() throws, and UsageError if the options name algorithms.
LAMINA_API std::vector<PlannedUnit> cudnn_graph_units(const Graph&, const Options& = {});

/// The graphs of a unit, each as a spec and a pass, in the order in which they run: forward, backward_params,
/// backward_data. The gradients of a batch norm are one graph, listed as backward_params. A data gradient that is
/// masked (Spec::masks_dx) has two graphs: without and with the mask.
LAMINA_API std::vector<std::pair<Spec, Pass>> cudnn_graphs(const Spec&);

/// The graph of a unit's pass in one line, with cuDNN's numbers. Equal graphs have equal lines, and different graphs
/// have different lines. Tensors are dense and aligned to 16 bytes. The mask of the unit's ReLU is applied before the
/// gradients, whose graphs read the masked dy; in nhwc the gradients of a batch norm apply it themselves. Needs no
/// library. Throws UsageError for another pass, Unsupported for a unit without a graph.
LAMINA_API std::string cudnn_graph(const Spec&, Pass);

/// An opened cuDNN, and the device that the queries are about.
///
/// cuDNN reads NVIDIA_TF32_OVERRIDE from the environment once per process, at its first answer. If it is 0, engines
/// that use TF32 are not proposed. To get the answers with and without TF32, use two processes.
class LAMINA_API CudnnEngines {
 public:
  /// `directory` holds libcudnn.so.9; empty: the system's loader looks for it. `device` is a set of properties as JSON,
  /// in the form of cuDNN's device-property descriptor. Throws LoadError (there is no cuDNN, it is older than 9.8, it
  /// needs a driver's library, or this process uses another cuDNN), UsageError (properties that the library rejects,
  /// with its own text), DeviceError (a call failed).
  CudnnEngines(const std::string& directory, const std::string& device);
  ~CudnnEngines();
  CudnnEngines(const CudnnEngines&) = delete;
  CudnnEngines& operator=(const CudnnEngines&) = delete;

  std::string version() const;    ///< "9.19.0"
  std::string directory() const;  ///< directory from which the library was opened

  /// For the graph of a unit's pass: the engines of heuristic mode A in its order, then those of FALLBACK. Empty if the
  /// library proposes none. Throws what cudnn_graph() throws, Unsupported where the library cannot describe the graph,
  /// LoadError (its parts come from several directories), DeviceError (a call failed). Not thread-safe.
  std::vector<CudnnEngine> list(const Spec&, Pass) const;

  /// Builds the plan of an engine with its knobs. Only its index and knobs are used, so it need not come from list().
  /// With a folder, a plan of the same key is loaded from there, and a new plan is kept there. The key is the version,
  /// the properties that a plan depends on, NVIDIA_TF32_OVERRIDE, the graph, the engine and its knobs. A file that is
  /// damaged or of another key is replaced. A plan that cannot be made is an answer, not an error. Throws what
  /// cudnn_graph() throws, LoadError (as list() does, or before 9.11), and FileError for a folder that is a file.
  CudnnPlan build(const Spec&, Pass, const CudnnEngine&, const std::filesystem::path& folder = {}) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lamina
