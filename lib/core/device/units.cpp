// Units per multiprocessor of each NVIDIA architecture, from its programming guide and white paper.

#include "gpu.h"

namespace lamina {

MultiprocessorUnits units_of(int major, int minor) {
  switch (10 * major + minor) {
    case 50:
    case 52:
    case 53: return {128, 0, 0};
    case 60: return {64, 0, 0};
    case 61:
    case 62: return {128, 0, 0};
    case 70:
    case 72:
    case 75: return {64, 0, 512};  // Volta, Turing: fp16 tensor units only
    case 80: return {64, 512, 1024};
    case 86:
    case 89: return {128, 256, 512};
    case 87: return {128, 0, 0};
    case 90: return {128, 1024, 2048};
    case 100:
    case 103: return {128, 2048, 4096};
    case 110: return {128, 0, 0};
    case 120:
    case 121: return {128, 256, 512};
    default: return {};
  }
}

}  // namespace lamina
