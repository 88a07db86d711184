#pragma once
// The program, from its arguments to its exit status.

#include "bench/machine/backends.h"

namespace lamina::bench {

/// Runs lamina_bench and gives its exit status. `make` makes the backends.
int run_program(int argc, char** argv, const MakeBackend& make = make_backend);

}  // namespace lamina::bench
