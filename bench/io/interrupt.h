#pragma once
// SIGINT and SIGTERM: the pass that runs is finished, no other begins, and what was measured is kept.

namespace lamina::bench {

/// From here on the first signal is remembered. A second ends the process as if nothing had been set up.
void catch_interrupts();

void hush_interrupts();  ///< the first signal is remembered without a word: of several ranks one says it

int interrupted();  ///< the signal, or 0; any thread may ask

struct Interrupted {};  ///< ends what is not worth finishing

/// While one is alive, a signal ends the making of a plan, by Interrupted. Results that are there are described by
/// plans as well, so it covers no more than the plan that is to be timed.
class EndsPlanning {
 public:
  explicit EndsPlanning(bool ends = true);
  ~EndsPlanning();
  EndsPlanning(const EndsPlanning&) = delete;  // there is one at a time
  EndsPlanning& operator=(const EndsPlanning&) = delete;
};

/// Backend::while_planning of all backends.
void while_planning();

}  // namespace lamina::bench
