// Catch's own code, and the call that runs the cases of a test binary. Apart from main(), so that programs with a
// main() of their own can link it.

#define CATCH_CONFIG_RUNNER
#include "tests/support/catch.h"

int run_cases(int argc, char* argv[]);  // for main.cpp alone
int run_cases(int argc, char* argv[]) { return Catch::Session().run(argc, argv); }
