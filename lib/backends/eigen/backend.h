#pragma once
// The backend "eigen": every op on the host, in f32 and f64, and in f32 on values of f16 and bf16, on dense or pitched
// nchw tensors, by its own threads.

#include "lib/backends/common/on_copies.h"
#include "lib/backends/eigen/runtime/common.h"
#include "lib/core/device/host/host_device.h"

namespace lamina::eigen {

class EigenMixedPrecision final : public MixedPrecisionLowering {
 public:
  explicit EigenMixedPrecision(const Context& context) : context_(context) {}
  std::string_view backend() const override { return "eigen"; }
  std::int64_t chunk_elements() const override;
  bool takes_halves(const Spec&) const override;
  Lowered lower(const Spec&, const Choice&) override;
  void convert(const Tensor& to, const Tensor& from) override { context_.set.convert(to, from, context_.pool); }

 private:
  const Context& context_;
};

class EigenBackend final : public Backend {
 public:
  /// Throws UsageError for a bad number of threads, for a device other than 0 and for an instruction set that this
  /// build lacks; Unsupported for one that this processor lacks. Starts no thread: the first kernel does.
  explicit EigenBackend(const BackendOptions&);

  std::string_view name() const override { return "eigen"; }
  std::string available() const override { return {}; }
  /// "kernels of Lamina, Eigen 3.4.0 for im2col_eigen, lrn, softmax and losses, instruction set
  /// x86-64-v4, 2 threads"
  std::string describe() override;
  Device& device() override { return device_; }

  std::vector<std::string> algorithms(const Spec&, Pass) const override;
  bool fuses(const Spec&, const Node& next, int operand) const override;
  bool takes_pitch(const Spec&) const override { return true; }
  Lowered lower(const Spec&, const Choice&) override;
  double peak_flops_per_second(DType) override;
  void update(const Update& update) override { context_.set.update(update, pool_); }
  void check_overflow(const UpdateTensors& all) override { context_.set.check_overflow(all, pool_); }

 private:
  ThreadPool pool_;
  EigenMixedPrecision halves_{context_};
  Context context_;
  HostDevice device_;
};

}  // namespace lamina::eigen
