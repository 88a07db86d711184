// The main function of every test binary.

#define CATCH_CONFIG_RUNNER
#include "support/catch.h"

int main(int argc, char* argv[]) { return Catch::Session().run(argc, argv); }
