// SIGINT and SIGTERM.

#include "interrupt.h"

#include <unistd.h>

#include <csignal>

namespace lamina::bench {
namespace {

volatile std::sig_atomic_t caught = 0;

extern "C" void remember(int signal) {
  caught = signal;
  std::signal(signal, SIG_DFL);
  constexpr char text[] = "\nlamina_bench: interrupted; finishing the pass that runs, then keeping what there is\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, sizeof text - 1);
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, remember);
  std::signal(SIGTERM, remember);
}

int interrupted() { return caught; }

}  // namespace lamina::bench
