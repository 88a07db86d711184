// Micro-kernels for the instruction set that this file is compiled for.

#if defined(__AVX512F__)  // x86-64-v4: 32 registers of 64 bytes, tiles of 8 rows by 3 vectors
#include <immintrin.h>
#define LAMINA_VECTOR_BYTES 64
#define LAMINA_VECTOR_REGISTERS 32
#define LAMINA_TILE_ROWS 8
#elif defined(__AVX2__)  // x86-64-v3: 16 registers of 32 bytes, tiles of 4 rows by 3 vectors or of 6 by 2
#include <immintrin.h>
#define LAMINA_VECTOR_BYTES 32
#define LAMINA_VECTOR_REGISTERS 16
#define LAMINA_TILE_ROWS 4
#else  // generic: vectors of 16 bytes, tiles of 4 rows by 3 vectors
#define LAMINA_VECTOR_BYTES 16
#define LAMINA_VECTOR_REGISTERS 16
#define LAMINA_TILE_ROWS 4
#endif
#include "micro_kernels_body.inc"
