// A fake cuBLAS 12.9.7 for tests of the loader. With LACKING defined it has only two of cuBLAS's functions.

extern "C" {

int cublasCreate_v2(void**) { return 14; }
int cublasGetProperty(int which, int* value) {
  const int version[] = {12, 9, 7};
  *value = version[which];
  return 0;
}

#if !defined(LACKING)
int cublasDestroy_v2(void*) { return 0; }
int cublasSetStream_v2(void*, void*) { return 0; }
int cublasSetWorkspace_v2(void*, void*, unsigned long) { return 0; }
int cublasSetMathMode(void*, int) { return 0; }
int cublasSgemm_v2() { return 0; }
int cublasDgemm_v2() { return 0; }
int cublasSgemmStridedBatched() { return 0; }
int cublasDgemmStridedBatched() { return 0; }
int cublasGemmEx() { return 0; }
#endif
}
