#pragma once
// The backend "cudnn": every op by calls of cuDNN or, if it has none, of cuBLAS or our kernels, in f64, f32, f16 and
// bf16, in nchw and for most ops nhwc. The backend "cudnn-graph": the same, with engines of cuDNN's graphs first.

#include <memory>
#include <string>
#include <vector>

#include "lib/backends/common/on_copies.h"
#include "lib/backends/cudnn/graph/unit_engines.h"
#include "lib/backends/cudnn/library/session.h"

namespace lamina::cudnn {

class CudnnBackend final : public Backend {
 public:
  /// `name` is "cudnn" or "cudnn:<directory>". With engines it begins with "cudnn-graph", and units end where graphs
  /// end. Tests supply their own machine and library.
  CudnnBackend(std::string name, std::unique_ptr<Machine>, Session::Open,
               std::unique_ptr<graph::UnitEngines> = nullptr);

  std::string_view name() const override { return name_; }
  std::string available() const override;
  std::string describe() override;  ///< "cuDNN 9.19.0 of <directory>, built for CUDA 12.9, ..."
  Device& device() override;        ///< opens the library and makes its handle, so that no pass does

  std::vector<std::string> algorithms(const Spec&, Pass) const override;
  bool fuses(const Spec&, const Node& next, int operand) const override;
  bool masks_dx(const Spec&, const Spec& reader) const override;
  bool takes_pitch(const Spec&) const override;

  /// Opens the library. A convolution's algorithm and workspace are queried with a handle, which needs the device;
  /// without a device, the workspace is the choice's limit, and reported as not exact.
  Lowered lower(const Spec&, const Choice&) override;

  void update(const Update&) override;
  void check_overflow(const UpdateTensors& all) override { session_->machine().check_overflow(all); }
  double peak_flops_per_second(DType dtype) override { return session_->machine().peak_flops_per_second(dtype); }

 private:
  std::string name_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<graph::UnitEngines> engines_;  ///< null in cudnn; its plans end before the session
  std::unique_ptr<MixedPrecisionLowering> halves_;
};

/// The backend on the machine's GPU: "cudnn", "cudnn-graph", or either with a colon and the directory of the cuDNN, by
/// default the system's. Throws LoadError if this process has claimed another one.
std::unique_ptr<Backend> make_backend(const std::string& name, const BackendOptions&);

}  // namespace lamina::cudnn
