#pragma once
// SIGINT and SIGTERM: the running pass is finished, no other pass begins, and the measured results are kept.

namespace lamina::bench {

/// Starts to remember the first signal of each kind. A second signal of the same kind ends the process as usual.
void catch_interrupts();

void hush_interrupts();  ///< turns off the message of a signal: only rank 0 prints a message

int interrupted();  ///< the last remembered signal, or 0; any thread may call this

struct Interrupted {};  ///< exception that ends the making of a plan after a signal

/// While an object made with `ends` is alive, a signal ends the making of a plan with the exception Interrupted. Keep
/// the object alive only while a plan that is to be timed is made: later plans, which only describe what was measured,
/// must be completed.
class EndsPlanning {
 public:
  explicit EndsPlanning(bool ends = true);
  ~EndsPlanning();
  EndsPlanning(const EndsPlanning&) = delete;  // there may be only one object at a time
  EndsPlanning& operator=(const EndsPlanning&) = delete;
};

/// The function that all backends get as Backend::while_planning. Throws Interrupted after a signal if an EndsPlanning
/// that ends plans is alive.
void while_planning();

}  // namespace lamina::bench
