// lamina_bench: times networks and layers under Google Benchmark, or describes networks.

#include "program.h"

int main(int argc, char** argv) { return lamina::bench::run_program(argc, argv); }
