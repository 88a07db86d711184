#pragma once
// What cuDNN's heuristics would choose for a convolution on a given device, which may be absent: the engines of its
// graph API, ranked, with the library's notes on each. Needs cuDNN 9.8 or later; no driver, no GPU.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/api.h"
#include "lamina/op.h"
#include "lamina/shape.h"

namespace lamina {

/// One way of running a convolution that the heuristics propose: an engine with values for its knobs.
struct CudnnEngine {
  struct Knob {
    std::string name;  ///< "tile_size"; "knob 47" for a knob that this library does not know
    std::int64_t value;
    bool operator==(const Knob&) const = default;
  };

  std::int64_t index;              ///< number of the engine: stable within one version of cuDNN only
  bool fallback;                   ///< whether it is from the fallback list, which should work but may be slow
  std::vector<std::string> notes;  ///< "tensor_core", "nondeterministic", ...: see cudnn_note_names()
  std::vector<Knob> knobs;
  std::int64_t workspace_bytes;  ///< workspace in bytes, as the library states it for this configuration

  LAMINA_API bool has(std::string_view note) const;
  /// Whether it uses no tensor cores and does not round its inputs. PyTorch keeps these engines for f32 without TF32.
  bool strict() const { return !has("tensor_core") && !has("down_convert_inputs"); }
};

/// Every note that has a name: first those about numerics, then those about behaviour.
LAMINA_API const std::vector<std::string>& cudnn_note_names();

/// An opened cuDNN, and the device that the queries are about.
///
/// cuDNN reads NVIDIA_TF32_OVERRIDE from the environment once per process, at its first answer. If it is 0, engines
/// that use TF32 are not proposed. To get the answers with and without TF32, use two processes.
class LAMINA_API CudnnEngines {
 public:
  /// `directory` holds libcudnn.so.9; empty: the system's loader looks for it. `device` is a set of properties as JSON,
  /// in the form of cuDNN's device-property descriptor. Throws LoadError (no cuDNN there, one before
  /// 9.8, or not the one this process uses), UsageError (properties that the library rejects, with its own text),
  /// DeviceError (a call failed).
  CudnnEngines(const std::string& directory, const std::string& device);
  ~CudnnEngines();
  CudnnEngines(const CudnnEngines&) = delete;
  CudnnEngines& operator=(const CudnnEngines&) = delete;

  std::string version() const;    ///< "9.19.0"
  std::string directory() const;  ///< directory from which the library was opened

  /// For one convolution without bias in f32 (x, w and y dense in `layout`, at 16 bytes; beta 0): the engines of
  /// heuristic mode A in its order, then those of mode FALLBACK. Empty if the library proposes none. `pass` is
  /// forward, backward_data or backward_params. Throws ShapeError (as infer does), UsageError (another pass),
  /// Unsupported (the library cannot describe this convolution), LoadError (its parts come from several directories),
  /// DeviceError (a call failed). Not thread-safe.
  std::vector<CudnnEngine> list(const Conv&, const Shape& x, Layout layout, Pass pass) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lamina
