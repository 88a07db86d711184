// Compares the numbers of graph_types.h with cuDNN's own. Compiled if the header of version 9 or later is
// found; generates no code.

#include "graph_types.h"

#include <cudnn.h>

#include <iterator>

namespace lamina::cudnn::graph {
namespace {

#if CUDNN_VERSION >= 90000

constexpr bool same(int ours, int theirs) { return ours == theirs; }

static_assert(same(convolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
static_assert(same(engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR));
static_assert(same(engine_config, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
static_assert(same(engine_heuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
static_assert(same(knob_choice, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR));
static_assert(same(operation_forward, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR));
static_assert(same(operation_backward_filter, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR));
static_assert(same(operation_backward_data, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR));
static_assert(same(operation_graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
static_assert(same(tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR));

static_assert(same(type_data_type, CUDNN_TYPE_DATA_TYPE));
static_assert(same(type_int64, CUDNN_TYPE_INT64));
static_assert(same(type_double, CUDNN_TYPE_DOUBLE));
static_assert(same(type_convolution_mode, CUDNN_TYPE_CONVOLUTION_MODE));
static_assert(same(type_heuristic_mode, CUDNN_TYPE_HEUR_MODE));
static_assert(same(type_knob, CUDNN_TYPE_KNOB_TYPE));
static_assert(same(type_numerical_note, CUDNN_TYPE_NUMERICAL_NOTE));
static_assert(same(type_descriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR));
static_assert(same(type_behavior_note, CUDNN_TYPE_BEHAVIOR_NOTE));
static_assert(same(type_char, CUDNN_TYPE_CHAR));

static_assert(same(convolution_compute_type, CUDNN_ATTR_CONVOLUTION_COMP_TYPE));
static_assert(same(convolution_form, CUDNN_ATTR_CONVOLUTION_CONV_MODE));
static_assert(same(convolution_dilations, CUDNN_ATTR_CONVOLUTION_DILATIONS));
static_assert(same(convolution_strides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES));
static_assert(same(convolution_post_paddings, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS));
static_assert(same(convolution_pre_paddings, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS));
static_assert(same(convolution_spatial_dimensions, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
static_assert(same(heuristics_mode, CUDNN_ATTR_ENGINEHEUR_MODE));
static_assert(same(heuristics_graph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
static_assert(same(heuristics_results, CUDNN_ATTR_ENGINEHEUR_RESULTS));
static_assert(same(config_engine, CUDNN_ATTR_ENGINECFG_ENGINE));
static_assert(same(config_knob_choices, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES));
static_assert(same(knob_choice_type, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE));
static_assert(same(knob_choice_value, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
static_assert(same(graph_operations, CUDNN_ATTR_OPERATIONGRAPH_OPS));
static_assert(same(tensor_alignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT));
static_assert(same(tensor_data_type, CUDNN_ATTR_TENSOR_DATA_TYPE));
static_assert(same(tensor_dimensions, CUDNN_ATTR_TENSOR_DIMENSIONS));
static_assert(same(tensor_strides, CUDNN_ATTR_TENSOR_STRIDES));
static_assert(same(tensor_id, CUDNN_ATTR_TENSOR_UNIQUE_ID));
static_assert(same(engine_index, CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
static_assert(same(engine_numerical_notes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE));
static_assert(same(engine_behavior_notes, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE));

static_assert(same(forward_attributes + alpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA));
static_assert(same(forward_attributes + beta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA));
static_assert(same(forward_attributes + descriptor, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC));
static_assert(same(forward_attributes + weights, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W));
static_assert(same(forward_attributes + image, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X));
static_assert(same(forward_attributes + result, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y));
static_assert(same(backward_data_attributes + alpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA));
static_assert(same(backward_data_attributes + beta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA));
static_assert(same(backward_data_attributes + descriptor, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC));
static_assert(same(backward_data_attributes + weights, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W));
static_assert(same(backward_data_attributes + image, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX));
static_assert(same(backward_data_attributes + result, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY));
static_assert(same(backward_filter_attributes + alpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA));
static_assert(same(backward_filter_attributes + beta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA));
static_assert(same(backward_filter_attributes + descriptor, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC));
static_assert(same(backward_filter_attributes + weights, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW));
static_assert(same(backward_filter_attributes + image, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X));
static_assert(same(backward_filter_attributes + result, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY));

static_assert(same(data_float, CUDNN_DATA_FLOAT));
static_assert(same(cross_correlation, CUDNN_CROSS_CORRELATION));
static_assert(same(mode_fallback, CUDNN_HEUR_MODE_FALLBACK) && same(mode_a, CUDNN_HEUR_MODE_A));

// Later versions add notes and knobs; the first ones keep their numbers.
static_assert(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC == 4 && CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13 == 8);
static_assert(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION == 0);
static_assert(CUDNN_KNOB_TYPE_TILE_SIZE == 2 && CUDNN_KNOB_TYPE_WORKSPACE == 25);
#if CUDNN_VERSION >= 90800
static_assert(same(device_properties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR));
static_assert(same(heuristics_device, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP));
static_assert(same(config_workspace_bytes, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE));
static_assert(same(device_json, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION));
static_assert(std::size(numerical_notes) <= CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
static_assert(CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API == 3);
#endif
#if CUDNN_VERSION >= 91900
static_assert(std::size(behavior_notes) <= CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
static_assert(std::size(knobs) <= CUDNN_KNOB_TYPE_COUNTS && CUDNN_KNOB_TYPE_SWAP_AB + 1 == std::size(knobs));
#endif

#endif

}  // namespace
}  // namespace lamina::cudnn::graph
