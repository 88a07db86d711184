// SIGINT and SIGTERM.

#include "interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace lamina::bench {
namespace {

std::atomic<int> caught = 0;
std::atomic<bool> hushed = false, ends_planning = false;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler must not take a lock");

extern "C" void remember(int signal) {
  caught = signal;
  if (hushed) return;
  constexpr char text[] = "\nlamina_bench: interrupted; finishing the pass that runs, then keeping what there is\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, sizeof text - 1);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = remember;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

void hush_interrupts() { hushed = true; }

int interrupted() { return caught; }

EndsPlanning::EndsPlanning(bool ends) { ends_planning = ends; }
EndsPlanning::~EndsPlanning() { ends_planning = false; }

void while_planning() {
  if (ends_planning && caught != 0) throw Interrupted();
}

}  // namespace lamina::bench
