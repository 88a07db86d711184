// lamina_bench: times networks, layers and set-up under Google Benchmark, or describes networks.

#include "program.h"

int main(int argc, char** argv) { return lamina::bench::run_program(argc, argv); }
