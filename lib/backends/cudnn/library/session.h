#pragma once
// A library, a device, and the handle that joins them: each opened when first needed.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "call.h"
#include "machine.h"

namespace lamina::cudnn {

namespace graph {
class UnitEngines;
}

/// The calls after which the library may have opened more parts.
enum class Use : std::uint8_t { query, forward, backward_params, backward_data };

/// Outlives every kernel of its backend.
class Session {
 public:
  using Open = std::function<const Api&()>;

  Session(std::unique_ptr<Machine> machine, Open open) : machine_(std::move(machine)), open_(std::move(open)) {}

  /// The library, opened by the first call that succeeds. Throws LoadError.
  const Api& api();

  /// Whether there is a device for a handle. Without a device, a convolution is lowered with workspace that is not
  /// exact, and a recurrent op is not lowered. Other ops need a device only to run.
  bool has_device() const { return machine_->unavailable().empty(); }

  /// The handle, on the device's stream. Throws LoadError (also for a mixture of directories) and DeviceError.
  HandleObject* handle();

  /// Call it after each library call of this kind. Until a check of this kind has succeeded, checks that all mapped
  /// parts of the library are of one directory. Throws LoadError if they are of two.
  void check_parts(Use);

  Machine& machine() { return *machine_; }
  graph::UnitEngines* engines = nullptr;  ///< engines of the backend cudnn-graph; null in cudnn
  Blas& blas();
  std::string describe_blas();

 private:
  std::unique_ptr<Machine> machine_;
  Open open_;
  const Api* api_ = nullptr;
  std::array<bool, 4> checked_{};  ///< whether the parts are checked, by Use
  std::optional<Handle> handle_;
};

/// The right to use the cuDNN of one directory, or the system's, in this process. Two versions share parts silently,
/// so each needs a separate process.
class Claim {
 public:
  /// Opens nothing. Throws LoadError for a claim on another directory, or if process_library() opened another cuDNN.
  explicit Claim(const std::string& directory);
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
};

/// The one cuDNN of this process, from the directory of the first call that succeeds. Throws LoadError if a later call
/// names another directory.
const Api& process_library(const std::string& directory);

}  // namespace lamina::cudnn
