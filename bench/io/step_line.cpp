// What runs now, on standard error.

#include "step_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace lamina::bench {

bool on_terminal() {
  static const bool is = isatty(STDERR_FILENO) == 1;
  return is;
}

void show_step(const std::string& what) {
  fmt::print(stderr, "{}{}{}", on_terminal() ? "\r\033[K" : "", what, on_terminal() ? "" : "\n");
  std::fflush(stderr);
}

void clear_step() {
  if (on_terminal()) show_step("");
}

}  // namespace lamina::bench
