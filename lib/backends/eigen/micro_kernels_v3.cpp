// Micro-kernels for x86-64-v3: AVX2 and FMA, 16 registers of 32 bytes, tiles of 4 rows by 3 vectors.
#include <immintrin.h>
#define LAMINA_VECTOR_BYTES 32
#define LAMINA_TILE_ROWS 4
#define LAMINA_SET_NAME "x86-64-v3"
#define LAMINA_SET_OBJECT instruction_set_v3
#include "micro_kernels_body.inc"
