// Compares the numbers of types.h with cuDNN's own. Compiled if the header of 9.11 or later is found; generates no
// code.

#include "types.h"

#include <cudnn.h>

#include <algorithm>

namespace lamina::cudnn::graph {
namespace {

#if CUDNN_VERSION >= 91100

#define LAMINA_CUDNN_SAME(name, number, theirs) static_assert(static_cast<int>(theirs) == static_cast<int>(name));
LAMINA_CUDNN_KINDS(LAMINA_CUDNN_SAME)
LAMINA_CUDNN_TYPES(LAMINA_CUDNN_SAME)
LAMINA_CUDNN_ATTRIBUTES(LAMINA_CUDNN_SAME)
LAMINA_CUDNN_VALUES(LAMINA_CUDNN_SAME)
#undef LAMINA_CUDNN_SAME

constexpr bool same(int ours, int theirs) { return ours == theirs; }
static_assert(same(forward_alpha + result, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y));
static_assert(same(backward_data_alpha + weights, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W));
static_assert(same(backward_data_alpha + image, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX));
static_assert(same(backward_filter_alpha + descriptor, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC));
static_assert(same(backward_filter_alpha + result, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY));

// Later versions add notes and knobs; the first ones keep their numbers.
static_assert(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC == 4 && CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13 == 8);
static_assert(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION == 0 && CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API == 3);
static_assert(CUDNN_KNOB_TYPE_TILE_SIZE == 2 && CUDNN_KNOB_TYPE_WORKSPACE == 25);
constexpr auto count_of(std::string_view names) { return 1 + std::count(names.begin(), names.end(), ' '); }
static_assert(count_of(numerical_notes) <= CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
#if CUDNN_VERSION >= 92200
static_assert(CUDNN_KNOB_TYPE_OUTPUT_TMA_ENABLE + 1 == count_of(knobs) && count_of(knobs) <= CUDNN_KNOB_TYPE_COUNTS);
#endif

#endif

}  // namespace
}  // namespace lamina::cudnn::graph
