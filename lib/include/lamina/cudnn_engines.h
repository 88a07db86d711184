#pragma once
// What cuDNN's heuristics would choose for a convolution on a device that need not be there: the engines of its graph
// API, ranked, with what the library says of each. Needs cuDNN 9.8 or later; no driver, no GPU.

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

/// One way of running a convolution that the heuristics propose: an engine with settings of its knobs.
struct CudnnEngine {
  struct Knob {
    std::string name;  ///< "tile_size"; "knob 47" for one that this library does not know
    std::int64_t value;
    bool operator==(const Knob&) const = default;
  };

  std::int64_t index;              ///< of the engine: stable within one version of cuDNN only
  bool fallback;                   ///< from the list that promises to work and not to be fast
  std::vector<std::string> notes;  ///< "tensor_core", "nondeterministic", ...: see cudnn_note_names()
  std::vector<Knob> knobs;
  std::int64_t workspace_bytes;  ///< as the library states it for this configuration

  LAMINA_API bool has(std::string_view note) const;
  /// No tensor cores and no rounding of inputs: what PyTorch keeps of a list for f32 without TF32.
  bool strict() const { return !has("tensor_core") && !has("down_convert_inputs"); }
};

/// Every note there is a name for: numerical ones first, then those of behaviour.
LAMINA_API const std::vector<std::string>& cudnn_note_names();

/// A cuDNN opened to be asked, and the device it is asked about.
///
/// cuDNN reads NVIDIA_TF32_OVERRIDE from the environment once in a process, at its first answer: where it is 0, engines
/// that use TF32 are not proposed. So the answers with and without it are had from two processes.
class LAMINA_API CudnnEngines {
 public:
  /// `directory` holds libcudnn.so.9; empty: what the system's loader finds. `device` is a set of properties as JSON,
  /// in the form that cuDNN's device-property descriptor reads and writes. Throws LoadError (no cuDNN there, one before
  /// 9.8, or another than this process has), UsageError (properties that the library does not take, with its own text),
  /// DeviceError (a call failed).
  CudnnEngines(const std::string& directory, const std::string& device);
  ~CudnnEngines();
  CudnnEngines(const CudnnEngines&) = delete;
  CudnnEngines& operator=(const CudnnEngines&) = delete;

  std::string version() const;    ///< "9.19.0"
  std::string directory() const;  ///< that the library was opened from

  /// For one convolution without bias in f32 (x, w and y dense in `layout`, at 16 bytes; beta 0): the engines of
  /// heuristic mode A in its order, then those of mode FALLBACK. Empty where the library proposes none. `pass` is
  /// forward, backward_data or backward_params. Throws ShapeError (as infer does), UsageError (another pass),
  /// Unsupported (the library cannot even describe this), LoadError (its parts come from several directories),
  /// DeviceError (a call failed). Not for several threads.
  std::vector<CudnnEngine> list(const Conv&, const Shape& x, Layout layout, Pass pass) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lamina
