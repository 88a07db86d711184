#pragma once
// SIGINT and SIGTERM: the pass that runs is finished, no other begins, and the measured results are kept.

namespace lamina::bench {

/// From here on the first signal of each kind is remembered. A second one of the same kind ends the process as usual.
void catch_interrupts();

void hush_interrupts();  ///< remembers the first signal without printing a message: only rank 0 prints it

int interrupted();  ///< the signal, or 0; any thread may ask

struct Interrupted {};  ///< ends work that is not worth finishing

/// While such an object is alive, a signal ends the making of a plan, by Interrupted. Describing results also makes
/// plans, which a signal must not end. So keep the object alive only while the plan to be timed is made.
class EndsPlanning {
 public:
  explicit EndsPlanning(bool ends = true);
  ~EndsPlanning();
  EndsPlanning(const EndsPlanning&) = delete;  // only one object may exist at a time
  EndsPlanning& operator=(const EndsPlanning&) = delete;
};

/// The function that all backends have as Backend::while_planning. It throws Interrupted if EndsPlanning asks for that.
void while_planning();

}  // namespace lamina::bench
