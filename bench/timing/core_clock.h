#pragma once
// The clock of the processor's core now, as far as additions show it.

namespace lamina::bench {

/// Cycles per second of the core that the caller runs on: additions that wait for each other take a cycle each. The
/// best of several runs in less than a millisecond.
double core_clock();

}  // namespace lamina::bench
