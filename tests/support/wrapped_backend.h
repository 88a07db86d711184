#pragma once
// A backend around another backend, for tests of plans. It can prepare parameters, refuse gaps between images (a
// pitch), and call hooks after steps.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lamina/backend.h"

namespace lamina::test {

using KernelHook = std::function<void(const Args&)>;

/// A kernel that calls hooks before and after another kernel, which may be null. It needs at least `workspace_bytes` of
/// workspace.
std::shared_ptr<Kernel> around(
    std::shared_ptr<Kernel> inner, KernelHook before, KernelHook after = [](const Args&) {},
    std::size_t workspace_bytes = 0);

class WrappedBackend : public Backend {
 public:
  explicit WrappedBackend(Backend& inner) : inner_(inner) {}

  bool prepare = false;       ///< whether units copy parameters in `prepare` and compare them in other passes
  bool refuse_pitch = false;  ///< whether units refuse a pitch
  /// The hook that runs after a step of a unit; an empty hook does nothing.
  std::function<KernelHook(const Spec&, const Lowered::Step&)> after;

  int prepared = 0, prepared_compared = 0;
  std::vector<std::string> faults;  ///< checks that failed

  std::string_view name() const override { return inner_.name(); }
  std::string available() const override { return inner_.available(); }
  std::string describe() override { return inner_.describe(); }
  Device& device() override { return inner_.device(); }
  std::vector<std::string> algorithms(const Spec& spec, Pass pass) const override {
    return inner_.algorithms(spec, pass);
  }
  bool fuses(const Spec& spec, const Node& next, int operand) const override {
    return inner_.fuses(spec, next, operand);
  }
  bool takes_pitch(const Spec& spec) const override { return !refuse_pitch && inner_.takes_pitch(spec); }
  Lowered lower(const Spec&, const Choice&) override;
  void update(const Update& update) override { inner_.update(update); }
  double peak_flops_per_second(DType dtype) override { return inner_.peak_flops_per_second(dtype); }

 private:
  Backend& inner_;
};

}  // namespace lamina::test
