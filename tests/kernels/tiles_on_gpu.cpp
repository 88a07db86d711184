// Runs the tests of launchers again on a GPU, with the kernels that nvcc compiles.

#undef LAMINA_CUDA_ON_HOST
#include "bias_test.cpp"
#include "conv_1x1_test.cpp"
#include "products_test.cpp"
#include "recurrent_rows_test.cpp"
