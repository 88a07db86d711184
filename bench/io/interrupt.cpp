// SIGINT and SIGTERM.

#include "interrupt.h"

#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace lamina::bench {
namespace {

volatile std::sig_atomic_t caught = 0, count = 0;

extern "C" void remember(int signal) {
  caught = signal;
  count = count + 1;
  constexpr char text[] = "\nlamina_bench: interrupted; finishing the pass that runs, then keeping what there is\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, sizeof text - 1);
}

}  // namespace

void catch_interrupts(Further further) {
  struct sigaction action = {};
  action.sa_handler = remember;  // without SA_RESTART: waiting for a child ends early
  if (further == Further::ends) action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

int interrupted() { return caught; }
int interruptions() { return count; }

}  // namespace lamina::bench
