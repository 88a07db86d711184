#pragma once
// The backends of a run, by name. A backend is made when it is first asked for.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/options/settings.h"

namespace lamina::bench {

/// The function that makes backends: make_backend, or a test's substitute.
using MakeBackend = std::function<std::shared_ptr<Backend>(const std::string& name, const BackendOptions&)>;

class Backends {
 public:
  explicit Backends(BackendSettings settings, MakeBackend make = make_backend);

  /// The backends that the user named. If the user named none: all that were built and can run here, except cuda-host
  /// and cudnn-graph. Throws UsageError for unknown names, and Unsupported if no backend can run.
  const std::vector<std::string>& names();
  /// The backends that were left out, and why: "cudnn: this build ...".
  const std::vector<std::string>& left_out() const { return left_out_; }

  int threads() const { return settings_.threads; }  ///< threads of a processor's backend; 0: all

  /// The backend of this name. Throws what make_backend throws.
  Backend& at(const std::string& name);
  Backend& usable(const std::string& name);  ///< like at(), but throws Unsupported if the backend cannot run here
  /// Sets the backend of this name.
  void put(const std::string& name, std::shared_ptr<Backend>);

 private:
  BackendSettings settings_;
  MakeBackend make_;
  std::map<std::string, std::shared_ptr<Backend>> backends_;
  std::vector<std::string> names_, left_out_;
};

bool runs_on_gpu(const std::string& backend);
/// The number of passes to time: `asked` or, if `asked` is 0, the default of the kind of device.
int passes_on(const std::string& backend, int asked);

}  // namespace lamina::bench
