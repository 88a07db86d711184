#pragma once
// What runs now, on standard error: on a terminal one line that is written over, elsewhere a line for each.

#include <string>

namespace lamina::bench {

bool on_terminal();  ///< whether standard error is one

void show_step(const std::string& what);
void clear_step();  ///< before other text is written

}  // namespace lamina::bench
