#pragma once
// SIGINT and SIGTERM: the running pass is finished, no other pass begins, and the measured results are kept.

namespace lamina::bench {

/// Starts to remember the first signal of each kind. A second signal of the same kind ends the process as usual.
void catch_interrupts();

void hush_interrupts();  ///< remembers the first signal without printing a message: only rank 0 prints it

int interrupted();  ///< the last signal, or 0; any thread may call this

struct Interrupted {};  ///< exception that ends the making of a plan after a signal

/// While an object of this class is alive, a signal ends the making of a plan with the exception Interrupted. Keep the
/// object alive only while a plan that is to be timed is made: a signal must not end the plans that describe results.
class EndsPlanning {
 public:
  explicit EndsPlanning(bool ends = true);
  ~EndsPlanning();
  EndsPlanning(const EndsPlanning&) = delete;  // there may be only one object at a time
  EndsPlanning& operator=(const EndsPlanning&) = delete;
};

/// The value of Backend::while_planning in all backends. Throws Interrupted after a signal if an EndsPlanning is alive.
void while_planning();

}  // namespace lamina::bench
