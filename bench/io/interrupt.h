#pragma once
// SIGINT and SIGTERM: the pass that runs is finished, no other begins, and what was measured is kept.

namespace lamina::bench {

/// From here on the first signal is remembered. A second ends the process as if nothing had been set up.
void catch_interrupts();

void hush_interrupts();  ///< the first signal is remembered without a word: of several ranks one says it

int interrupted();  ///< the signal, or 0; any thread may ask

}  // namespace lamina::bench
