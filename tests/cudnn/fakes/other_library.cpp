// A library with the name of cuDNN, but without cuDNN's functions.

extern "C" __attribute__((visibility("default"))) int nothing_of_cudnn() { return 0; }
