// A file with the name of cuDNN but other contents.

extern "C" __attribute__((visibility("default"))) int nothing_of_cudnn() { return 0; }
