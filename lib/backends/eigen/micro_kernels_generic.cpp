// Micro-kernels for any processor: vectors of 16 bytes, tiles of 4 rows by 3 vectors.
#define LAMINA_VECTOR_BYTES 16
#define LAMINA_TILE_ROWS 4
#define LAMINA_SET_NAME "generic"
#define LAMINA_SET_OBJECT instruction_set_generic
#include "micro_kernels_body.inc"
