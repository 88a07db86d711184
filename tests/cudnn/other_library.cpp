// A file by the name of cuDNN that is something else.

extern "C" __attribute__((visibility("default"))) int nothing_of_cudnn() { return 0; }
