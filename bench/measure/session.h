#pragma once
// What a subcommand measures with: it holds backends, makes plans on them, and knows what they reach.

#include <utility>

#include "bench/machine/backends.h"
#include "bench/machine/peaks.h"
#include "lamina/communicator.h"
#include "plans.h"

namespace lamina::bench {

struct Session {
  explicit Session(const PlanningSettings& settings = {}, MakeBackend make = make_backend)
      : backends(settings.backends, std::move(make)), plans(settings.net, settings.plan), peaks(backends) {}
  Session(const Session&) = delete;  // peaks point to the backends

  Backends backends;
  Plans plans;
  Peaks peaks;
  Communicator* ranks = nullptr;  ///< null: one, which is alone
};

}  // namespace lamina::bench
