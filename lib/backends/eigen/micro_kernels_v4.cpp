// Micro-kernels for x86-64-v4: AVX-512, 32 registers of 64 bytes, tiles of 8 rows by 3 vectors.
#include <immintrin.h>
#define LAMINA_VECTOR_BYTES 64
#define LAMINA_TILE_ROWS 8
#define LAMINA_SET_NAME "x86-64-v4"
#define LAMINA_SET_OBJECT instruction_set_v4
#include "micro_kernels_body.inc"
