#pragma once
// SIGINT and SIGTERM: the pass that runs is finished, no other begins, and what was measured is kept.

namespace lamina::bench {

/// What becomes of a signal after the first: it ends the process as if nothing had been set up, or is counted, for one
/// that has only to hand it on.
enum class Further { ends, counts };

/// From here on the first signal is remembered.
void catch_interrupts(Further = Further::ends);

int interrupted();    ///< the last signal, or 0
int interruptions();  ///< how many there were

}  // namespace lamina::bench
