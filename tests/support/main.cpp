// The main function of every test binary.

int run_cases(int argc, char* argv[]);  // runner.cpp

int main(int argc, char* argv[]) { return run_cases(argc, argv); }
