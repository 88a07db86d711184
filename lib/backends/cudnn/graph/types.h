#pragma once
// The numbers of cuDNN's graph API that plans need, so that no header of cuDNN is needed to build.
// A row has our name, the number, and cuDNN's name. Where cuDNN's header is found, header_check.cpp compares
// the numbers with it.

#include <string_view>

namespace lamina::cudnn::graph {

// Kinds of descriptors.
#define LAMINA_CUDNN_KINDS(X)                                                                      \
  X(pointwise, 0, CUDNN_BACKEND_POINTWISE_DESCRIPTOR)                                              \
  X(convolution, 1, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)                                          \
  X(engine, 2, CUDNN_BACKEND_ENGINE_DESCRIPTOR)                                                    \
  X(engine_config, 3, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)                                          \
  X(engine_heuristics, 4, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)                                     \
  X(execution_plan, 5, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)                                    \
  X(knob_choice, 7, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)                                          \
  X(operation_forward, 10, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)                 \
  X(operation_backward_filter, 11, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR) \
  X(operation_backward_data, 12, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)     \
  X(operation_pointwise, 13, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)                         \
  X(operation_graph, 15, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)                                  \
  X(variant_pack, 16, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)                                       \
  X(tensor, 17, CUDNN_BACKEND_TENSOR_DESCRIPTOR)                                                   \
  X(resample, 24, CUDNN_BACKEND_RESAMPLE_DESCRIPTOR)                                               \
  X(operation_resample_forward, 25, CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR)               \
  X(operation_resample_backward, 26, CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR)              \
  X(operation_norm_forward, 29, CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR)                   \
  X(operation_norm_backward, 30, CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR)                 \
  X(device_properties, 38, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)

// Types of the elements of an attribute.
#define LAMINA_CUDNN_TYPES(X)                              \
  X(type_handle, 0, CUDNN_TYPE_HANDLE)                     \
  X(type_data_type, 1, CUDNN_TYPE_DATA_TYPE)               \
  X(type_boolean, 2, CUDNN_TYPE_BOOLEAN)                   \
  X(type_int64, 3, CUDNN_TYPE_INT64)                       \
  X(type_double, 5, CUDNN_TYPE_DOUBLE)                     \
  X(type_pointer, 6, CUDNN_TYPE_VOID_PTR)                  \
  X(type_convolution_mode, 7, CUDNN_TYPE_CONVOLUTION_MODE) \
  X(type_heuristic_mode, 8, CUDNN_TYPE_HEUR_MODE)          \
  X(type_knob, 9, CUDNN_TYPE_KNOB_TYPE)                    \
  X(type_numerical_note, 11, CUDNN_TYPE_NUMERICAL_NOTE)    \
  X(type_pointwise_mode, 14, CUDNN_TYPE_POINTWISE_MODE)    \
  X(type_descriptor, 15, CUDNN_TYPE_BACKEND_DESCRIPTOR)    \
  X(type_behavior_note, 19, CUDNN_TYPE_BEHAVIOR_NOTE)      \
  X(type_resample_mode, 21, CUDNN_TYPE_RESAMPLE_MODE)      \
  X(type_padding_mode, 22, CUDNN_TYPE_PADDING_MODE)        \
  X(type_char, 24, CUDNN_TYPE_CHAR)                        \
  X(type_fraction, 26, CUDNN_TYPE_FRACTION)                \
  X(type_norm_mode, 27, CUDNN_TYPE_NORM_MODE)              \
  X(type_norm_phase, 28, CUDNN_TYPE_NORM_FWD_PHASE)

#define LAMINA_CUDNN_ATTRIBUTES(X)                                                          \
  X(pointwise_form, 0, CUDNN_ATTR_POINTWISE_MODE)                                           \
  X(pointwise_compute_type, 1, CUDNN_ATTR_POINTWISE_MATH_PREC)                              \
  X(convolution_compute_type, 100, CUDNN_ATTR_CONVOLUTION_COMP_TYPE)                        \
  X(convolution_form, 101, CUDNN_ATTR_CONVOLUTION_CONV_MODE)                                \
  X(convolution_dilations, 102, CUDNN_ATTR_CONVOLUTION_DILATIONS)                           \
  X(convolution_strides, 103, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)                        \
  X(convolution_post_paddings, 104, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)                   \
  X(convolution_pre_paddings, 105, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)                     \
  X(convolution_spatial_dimensions, 106, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS)               \
  X(heuristics_mode, 200, CUDNN_ATTR_ENGINEHEUR_MODE)                                       \
  X(heuristics_graph, 201, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)                           \
  X(heuristics_results, 202, CUDNN_ATTR_ENGINEHEUR_RESULTS)                                 \
  X(heuristics_device, 204, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP)                               \
  X(config_engine, 300, CUDNN_ATTR_ENGINECFG_ENGINE)                                        \
  X(config_knob_choices, 302, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES)                            \
  X(config_workspace_bytes, 303, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE)                       \
  X(plan_handle, 400, CUDNN_ATTR_EXECUTION_PLAN_HANDLE)                                     \
  X(plan_config, 401, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)                              \
  X(plan_workspace_bytes, 402, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)                    \
  X(plan_json, 405, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION)                          \
  X(plan_device, 407, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP)                                 \
  X(knob_choice_type, 600, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE)                                \
  X(knob_choice_value, 601, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE)                              \
  X(forward_alpha, 700, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA)                     \
  X(backward_data_alpha, 706, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA)              \
  X(backward_filter_alpha, 712, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA)          \
  X(operation_pointwise_form, 750, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)            \
  X(operation_pointwise_x, 751, CUDNN_ATTR_OPERATION_POINTWISE_XDESC)                       \
  X(operation_pointwise_b, 752, CUDNN_ATTR_OPERATION_POINTWISE_BDESC)                       \
  X(operation_pointwise_y, 753, CUDNN_ATTR_OPERATION_POINTWISE_YDESC)                       \
  X(operation_pointwise_dx, 756, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC)                     \
  X(operation_pointwise_dy, 757, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC)                     \
  X(graph_handle, 800, CUDNN_ATTR_OPERATIONGRAPH_HANDLE)                                    \
  X(graph_operations, 801, CUDNN_ATTR_OPERATIONGRAPH_OPS)                                   \
  X(tensor_alignment, 900, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)                                \
  X(tensor_data_type, 901, CUDNN_ATTR_TENSOR_DATA_TYPE)                                     \
  X(tensor_dimensions, 902, CUDNN_ATTR_TENSOR_DIMENSIONS)                                   \
  X(tensor_strides, 903, CUDNN_ATTR_TENSOR_STRIDES)                                         \
  X(tensor_id, 906, CUDNN_ATTR_TENSOR_UNIQUE_ID)                                            \
  X(tensor_is_virtual, 907, CUDNN_ATTR_TENSOR_IS_VIRTUAL)                                   \
  X(tensor_is_by_value, 908, CUDNN_ATTR_TENSOR_IS_BY_VALUE)                                 \
  X(pack_ids, 1000, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)                                     \
  X(pack_pointers, 1001, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)                             \
  X(pack_workspace, 1003, CUDNN_ATTR_VARIANT_PACK_WORKSPACE)                                \
  X(engine_graph, 1300, CUDNN_ATTR_ENGINE_OPERATION_GRAPH)                                  \
  X(engine_index, 1301, CUDNN_ATTR_ENGINE_GLOBAL_INDEX)                                     \
  X(engine_numerical_notes, 1303, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE)                         \
  X(engine_behavior_notes, 1305, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE)                           \
  X(engine_device, 1307, CUDNN_ATTR_ENGINE_DEVICEPROP)                                      \
  X(resample_form, 1700, CUDNN_ATTR_RESAMPLE_MODE)                                          \
  X(resample_compute_type, 1701, CUDNN_ATTR_RESAMPLE_COMP_TYPE)                             \
  X(resample_spatial_dimensions, 1702, CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS)                    \
  X(resample_post_paddings, 1703, CUDNN_ATTR_RESAMPLE_POST_PADDINGS)                        \
  X(resample_pre_paddings, 1704, CUDNN_ATTR_RESAMPLE_PRE_PADDINGS)                          \
  X(resample_strides, 1705, CUDNN_ATTR_RESAMPLE_STRIDES)                                    \
  X(resample_window, 1706, CUDNN_ATTR_RESAMPLE_WINDOW_DIMS)                                 \
  X(resample_padding, 1708, CUDNN_ATTR_RESAMPLE_PADDING_MODE)                               \
  X(resample_forward_x, 1710, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC)                      \
  X(resample_forward_y, 1711, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC)                      \
  X(resample_forward_index, 1712, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC)                \
  X(resample_forward_form, 1716, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC)                    \
  X(resample_backward_dx, 1720, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC)                   \
  X(resample_backward_dy, 1721, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC)                   \
  X(resample_backward_index, 1722, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC)               \
  X(resample_backward_form, 1725, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC)                   \
  X(norm_forward_form, 2000, CUDNN_ATTR_OPERATION_NORM_FWD_MODE)                            \
  X(norm_forward_phase, 2001, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE)                          \
  X(norm_forward_x, 2002, CUDNN_ATTR_OPERATION_NORM_FWD_XDESC)                              \
  X(norm_forward_mean, 2003, CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC)                       \
  X(norm_forward_inverse, 2004, CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC)            \
  X(norm_forward_scale, 2005, CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC)                     \
  X(norm_forward_shift, 2006, CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC)                      \
  X(norm_forward_epsilon, 2007, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC)                 \
  X(norm_forward_momentum, 2008, CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC)         \
  X(norm_forward_old_mean, 2009, CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC)     \
  X(norm_forward_old_variance, 2010, CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC)  \
  X(norm_forward_new_mean, 2011, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC)    \
  X(norm_forward_new_variance, 2012, CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC) \
  X(norm_forward_y, 2013, CUDNN_ATTR_OPERATION_NORM_FWD_YDESC)                              \
  X(norm_backward_form, 2100, CUDNN_ATTR_OPERATION_NORM_BWD_MODE)                           \
  X(norm_backward_x, 2101, CUDNN_ATTR_OPERATION_NORM_BWD_XDESC)                             \
  X(norm_backward_mean, 2102, CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC)                      \
  X(norm_backward_inverse, 2103, CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC)           \
  X(norm_backward_dy, 2104, CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC)                           \
  X(norm_backward_scale, 2105, CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC)                    \
  X(norm_backward_dscale, 2107, CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC)                  \
  X(norm_backward_dshift, 2108, CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC)                   \
  X(norm_backward_dx, 2109, CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC)                           \
  X(device_handle, 2701, CUDNN_ATTR_DEVICEPROP_HANDLE)                                      \
  X(device_json, 2702, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION)

// Values of attributes. library/types.h has the numbers of data types and of the convolution mode.
#define LAMINA_CUDNN_VALUES(X)                                       \
  X(data_int8, 3, CUDNN_DATA_INT8)                                   \
  X(data_boolean, 11, CUDNN_DATA_BOOLEAN)                            \
  X(mode_fallback, 2, CUDNN_HEUR_MODE_FALLBACK)                      \
  X(mode_a, 3, CUDNN_HEUR_MODE_A)                                    \
  X(pointwise_add, 0, CUDNN_POINTWISE_ADD)                           \
  X(pointwise_multiply, 1, CUDNN_POINTWISE_MUL)                      \
  X(pointwise_relu, 100, CUDNN_POINTWISE_RELU_FWD)                   \
  X(pointwise_relu_backward, 200, CUDNN_POINTWISE_RELU_BWD)          \
  X(pointwise_greater, 302, CUDNN_POINTWISE_CMP_GT)                  \
  X(resample_average_all, 2, CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING) \
  X(resample_max, 3, CUDNN_RESAMPLE_MAXPOOL)                         \
  X(resample_average, 4, CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING)     \
  X(padding_zero, 0, CUDNN_ZERO_PAD)                                 \
  X(padding_minus_infinity, 1, CUDNN_NEG_INF_PAD)                    \
  X(batch_norm, 2, CUDNN_BATCH_NORM)                                 \
  X(norm_training, 1, CUDNN_NORM_FWD_TRAINING)

#define LAMINA_CUDNN_ENUMERATOR(name, number, theirs) name = (number),
enum Kind : int { LAMINA_CUDNN_KINDS(LAMINA_CUDNN_ENUMERATOR) };
enum Type : int { LAMINA_CUDNN_TYPES(LAMINA_CUDNN_ENUMERATOR) };
enum Attribute : int { LAMINA_CUDNN_ATTRIBUTES(LAMINA_CUDNN_ENUMERATOR) };
enum Enumerator : int { LAMINA_CUDNN_VALUES(LAMINA_CUDNN_ENUMERATOR) };
#undef LAMINA_CUDNN_ENUMERATOR

/// The attributes of a convolution's operation, as offsets from the number of alpha, which depends on the pass. Image
/// and result are x and y, or their gradients.
constexpr int beta = 1, descriptor = 2, weights = 3, image = 4, result = 5;

/// Names of cuDNN's numbers 0, 1, 2, ..., as words.
constexpr std::string_view numerical_notes =
    "tensor_core down_convert_inputs reduced_precision_reduction fft nondeterministic winograd winograd_tile_4x4 "
    "winograd_tile_6x6 winograd_tile_13x13 strict_nan_propagation";
constexpr std::string_view behavior_notes =
    "runtime_compilation filter_int8x32_reorder bias_int8x32_reorder cuda_graph_native_api cublaslt_dependency";
constexpr std::string_view knobs =
    "split_k swizzle tile_size use_tex edge kblock ldga ldgb chunk_k split_h wino_tile multiply split_k_buf tilek "
    "stages reduction_mode cta_split_k_mode split_k_slc idx_mode sliced split_rs singlebuffer ldgc specfilt "
    "kernel_cfg workspace tile_cga tile_cga_m tile_cga_n block_size occupancy array_size_per_thread num_c_per_block "
    "split_cols tile_rows tile_cols load_size cta_count stream_k split_p_slc tile_m tile_n warp_spec_cfg swap_ab "
    "input_tma output_tma";

}  // namespace lamina::cudnn::graph
