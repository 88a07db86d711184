#pragma once
// How far a row can be trusted: A to D, by its samples and by what the machine did meanwhile. docs/measuring.md has the
// table.

#include <string>
#include <vector>

#include "machine_watch.h"
#include "samples.h"

namespace lamina::bench {

struct Grade {
  char letter = 'A';
  std::vector<std::string> reasons{};  ///< what kept it from A, and what could not be read
};

/// Needs a sample. The worst of all marks is the grade; what could not be read gives none, but without the load there
/// is no A.
Grade grade(const std::vector<double>& seconds, const Conditions&);

/// The conditions of samples of a device that reports its own clock and temperature, in place of the processor's.
Conditions conditions_of(const std::vector<Sample>&, Conditions);

}  // namespace lamina::bench
