// A backend around another backend. Its additions run on the host, on copies of the device's data.

#include "tests/support/wrapped_backend.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace lamina::test {
namespace {

class Around final : public Kernel {
 public:
  Around(std::shared_ptr<Kernel> inner, KernelHook before, KernelHook after, std::size_t workspace_bytes)
      : inner_(std::move(inner)),
        before_(std::move(before)),
        after_(std::move(after)),
        workspace_bytes_(workspace_bytes) {}
  std::size_t workspace_bytes() const override {
    return std::max(workspace_bytes_, inner_ ? inner_->workspace_bytes() : 0);
  }
  void run(const Args& args) override {
    before_(args);
    if (inner_) inner_->run(args);
    after_(args);
  }

 private:
  std::shared_ptr<Kernel> inner_;
  KernelHook before_, after_;
  std::size_t workspace_bytes_;
};

/// A host copy of `count` bytes on the device.
std::vector<std::byte> bytes_at(Device& device, const void* data, std::size_t count) {
  std::vector<std::byte> bytes(count);
  device.download(bytes.data(), data, count);
  return bytes;
}

}  // namespace

std::shared_ptr<Kernel> around(std::shared_ptr<Kernel> inner, KernelHook before, KernelHook after,
                               std::size_t workspace_bytes) {
  return std::make_shared<Around>(std::move(inner), std::move(before), std::move(after), workspace_bytes);
}

Lowered WrappedBackend::lower(const Spec& spec, const Choice& choice) {
  Lowered lowered = inner_.lower(spec, choice);
  for (Lowered::Step& step : lowered.steps)
    if (const KernelHook hook = after ? after(spec, step) : KernelHook())
      step.kernel = around(
          step.kernel, [](const Args&) {}, hook);
  if (prepare && !spec.w.empty()) {
    const std::size_t bytes = static_cast<std::size_t>(spec.w[0].shape.count()) * size_of(spec.w[0].dtype);
    const std::size_t behind =
        (lowered.prepared_bytes + 63) / 64 * 64;  // offset after the inner backend's prepared memory
    for (Lowered::Step& step : lowered.steps) {
      if (step.covers(Pass::prepare)) continue;
      step.kernel = around(step.kernel, [this, bytes, behind](const Args& args) {
        ++prepared_compared;
        if (args.prepared == nullptr || bytes_at(device(), static_cast<std::byte*>(args.prepared) + behind, bytes) !=
                                            bytes_at(device(), args.w[0].data, bytes))
          faults.emplace_back("prepared parameters are stale");
      });
    }
    lowered.prepared_bytes = behind + bytes;
    const auto copy = around(nullptr, [this, bytes, behind](const Args& args) {
      ++prepared;
      device().upload(static_cast<std::byte*>(args.prepared) + behind, bytes_at(device(), args.w[0].data, bytes).data(),
                      bytes);
    });
    lowered.steps.push_back({{{Pass::prepare}, "copy"}, copy});
  }
  return lowered;
}

}  // namespace lamina::test
