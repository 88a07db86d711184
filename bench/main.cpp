// lamina_bench: times networks and layers with Google Benchmark, trains and describes networks, and compares results.

#include "program.h"

int main(int argc, char** argv) { return lamina::bench::run_program(argc, argv); }
