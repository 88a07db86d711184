// The backends of a run, by name.

#include "backends.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/io/interrupt.h"
#include "lamina/error.h"

namespace lamina::bench {
Backends::Backends(BackendSettings settings, MakeBackend make)
    : settings_(std::move(settings)), make_(std::move(make)) {}

const std::vector<std::string>& Backends::names() {
  if (!names_.empty()) return names_;
  const std::vector<std::string> known = backend_names();
  if (!settings_.names.empty()) {
    for (const std::string& name : settings_.names)  // a backend that is known but not built has rows that say so
      if (!name.starts_with("cudnn:") && !name.starts_with("cudnn-graph:") &&
          std::find(known.begin(), known.end(), name) == known.end())
        at(name);
    return names_ = settings_.names;
  }
  for (const std::string& name : known) {
    if (name == "cuda-host" || name == "cudnn-graph") continue;
    try {
      if (const std::string reason = at(name).available(); !reason.empty())
        left_out_.push_back(reason);
      else
        names_.push_back(name);
    } catch (const Unsupported& error) {
      left_out_.emplace_back(error.what());
    }
  }
  if (names_.empty()) throw Unsupported(fmt::format("no backend can run here: {}", fmt::join(left_out_, "; ")));
  return names_;
}

Backend& Backends::at(const std::string& name) {
  std::shared_ptr<Backend>& made = backends_[name];
  if (made == nullptr) {
    const BackendOptions options{.threads = settings_.threads,
                                 .device = settings_.device,
                                 .memory_limit = settings_.memory_limit,
                                 .instruction_set = settings_.instruction_set,
                                 .plans = settings_.plans};
    // cuDNN's directory is no part of `name`, so rows of two versions of cuDNN have equal names.
    const bool own_cudnn = (name == "cudnn" || name == "cudnn-graph") && !settings_.cudnn.empty();
    made = make_(own_cudnn ? name + ":" + settings_.cudnn : name, options);
    made->while_planning = while_planning;
  }
  return *made;
}

Backend& Backends::usable(const std::string& name) {
  Backend& made = at(name);
  if (const std::string reason = made.available(); !reason.empty()) throw Unsupported(reason);
  return made;
}

void Backends::put(const std::string& name, std::shared_ptr<Backend> backend) { backends_[name] = std::move(backend); }

bool runs_on_gpu(const std::string& backend) { return backend == "cuda" || backend.starts_with("cudnn"); }

int passes_on(const std::string& backend, int asked) { return asked != 0 ? asked : runs_on_gpu(backend) ? 10 : 3; }

}  // namespace lamina::bench
