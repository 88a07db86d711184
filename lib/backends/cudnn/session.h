#pragma once
// A library, a device, and the handle that joins them: each opened when first needed.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "call.h"
#include "machine.h"

namespace lamina::cudnn {

/// Outlives every kernel of its backend.
class Session {
 public:
  using Open = std::function<const Api&()>;

  Session(std::unique_ptr<Machine> machine, Open open) : machine_(std::move(machine)), open_(std::move(open)) {}

  /// The library. Throws LoadError, at every call anew.
  const Api& api();

  /// Whether there is a device to make a handle on. The convolutions' choice and workspace need one, all else only to
  /// run.
  bool has_device() const { return machine_->unavailable().empty(); }

  /// The handle, on the device's stream. Throws LoadError (also for a mixture of directories) and DeviceError.
  HandleObject* handle();

  Machine& machine() { return *machine_; }
  Blas& blas();

 private:
  std::unique_ptr<Machine> machine_;
  Open open_;
  const Api* api_ = nullptr;
  std::optional<Handle> handle_;
};

/// The one cuDNN of this process: that of the first call that succeeds. Throws LoadError where a later call names
/// another directory: two versions share parts without a word, so that each needs a process of its own.
const Api& process_library(const std::string& directory);

}  // namespace lamina::cudnn
