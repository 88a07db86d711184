// The host as the backend's machine.

#include "cudnn/host_machine.h"

#include <optional>

namespace lamina::test {
namespace {

class HostMachine final : public cudnn::Machine {
 public:
  explicit HostMachine(MachineLog& log) : log_(log) {}
  std::string unavailable() const override { return log_.unavailable; }
  Device& device() override { return log_.device; }
  cudnn::Stream stream() override { return nullptr; }
  Blas& blas(int cuda_major, const std::string&) override {
    log_.cuda_major = cuda_major;
    if (!blas_) blas_.emplace(host_blas(), nullptr);
    return *blas_;
  }
  void advance_dropout(std::uint64_t* next, std::uint64_t* now) override {
    log_.calls.emplace_back("advance");
    *now = (*next)++;
  }
  void apply_dropout(const cudnn::Mask& mask, const std::uint64_t* step, const Tensor&, const Tensor&,
                     bool adds) override {
    log_.calls.push_back("apply key " + std::to_string(mask.key) + " below " + std::to_string(mask.threshold) + " at " +
                         std::to_string(*step) + (adds ? " adds" : ""));
  }

 private:
  MachineLog& log_;
  std::optional<Blas> blas_;
};

}  // namespace

std::unique_ptr<cudnn::Machine> make_host_machine(MachineLog& log) { return std::make_unique<HostMachine>(log); }

}  // namespace lamina::test
