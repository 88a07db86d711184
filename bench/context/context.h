#pragma once
// Facts about machine and build that go with the rows: what a reader of the file cannot find out later.

#include <string>
#include <utility>
#include <vector>

#include "bench/machine/backends.h"

namespace lamina::bench {

using Fact = std::pair<std::string, std::string>;
using Facts = std::vector<Fact>;

/// Known before anything runs: processor, memory, GPUs, system, compiler and flags, versions of every library in the
/// headers and at run time, commit, how it will be timed.
Facts static_context(Backends&);

/// What changes meanwhile: load average, clock and temperature of the processors, time; each key ends in "_" and
/// `when`.
Facts runtime_context(const std::string& when);

}  // namespace lamina::bench
