#pragma once
// The part of cuDNN's graph API that lists engines: its numbers, so that no header of cuDNN is needed to build.
// graph_types_check.cpp compares them with the real ones if these are installed.

#include <cstddef>
#include <cstdint>

namespace lamina::cudnn::graph {

/// Kinds of descriptors.
enum Kind : int {
  convolution = 1,
  engine = 2,
  engine_config = 3,
  engine_heuristics = 4,
  knob_choice = 7,
  operation_forward = 10,
  operation_backward_filter = 11,
  operation_backward_data = 12,
  operation_graph = 15,
  tensor = 17,
  device_properties = 38,
};

/// Types of the elements of an attribute.
enum Type : int {
  type_data_type = 1,
  type_int64 = 3,
  type_double = 5,
  type_convolution_mode = 7,
  type_heuristic_mode = 8,
  type_knob = 9,
  type_numerical_note = 11,
  type_descriptor = 15,
  type_behavior_note = 19,
  type_char = 24,
};

enum Attribute : int {
  convolution_compute_type = 100,
  convolution_form = 101,
  convolution_dilations = 102,
  convolution_strides = 103,
  convolution_post_paddings = 104,
  convolution_pre_paddings = 105,
  convolution_spatial_dimensions = 106,
  heuristics_mode = 200,
  heuristics_graph = 201,
  heuristics_results = 202,
  heuristics_device = 204,
  config_engine = 300,
  config_knob_choices = 302,
  config_workspace_bytes = 303,
  knob_choice_type = 600,
  knob_choice_value = 601,
  graph_operations = 801,
  tensor_alignment = 900,
  tensor_data_type = 901,
  tensor_dimensions = 902,
  tensor_strides = 903,
  tensor_id = 906,
  engine_index = 1301,
  engine_numerical_notes = 1303,
  engine_behavior_notes = 1305,
  device_json = 2702,
};

/// The attributes of a convolution's operation, counted from a first number that depends on the pass. Image and result
/// are x and y, or their gradients.
enum OperationAttribute : int { alpha, beta, descriptor, weights, image, result };
constexpr int forward_attributes = 700, backward_data_attributes = 706, backward_filter_attributes = 712;

constexpr int data_float = 0;
constexpr int cross_correlation = 1;
constexpr int mode_fallback = 2, mode_a = 3;

/// By number.
constexpr const char* numerical_notes[] = {"tensor_core",
                                           "down_convert_inputs",
                                           "reduced_precision_reduction",
                                           "fft",
                                           "nondeterministic",
                                           "winograd",
                                           "winograd_tile_4x4",
                                           "winograd_tile_6x6",
                                           "winograd_tile_13x13",
                                           "strict_nan_propagation"};
constexpr const char* behavior_notes[] = {"runtime_compilation", "filter_int8x32_reorder", "bias_int8x32_reorder",
                                          "cuda_graph_native_api", "cublaslt_dependency"};
constexpr const char* knobs[] = {"split_k",
                                 "swizzle",
                                 "tile_size",
                                 "use_tex",
                                 "edge",
                                 "kblock",
                                 "ldga",
                                 "ldgb",
                                 "chunk_k",
                                 "split_h",
                                 "wino_tile",
                                 "multiply",
                                 "split_k_buf",
                                 "tilek",
                                 "stages",
                                 "reduction_mode",
                                 "cta_split_k_mode",
                                 "split_k_slc",
                                 "idx_mode",
                                 "sliced",
                                 "split_rs",
                                 "singlebuffer",
                                 "ldgc",
                                 "specfilt",
                                 "kernel_cfg",
                                 "workspace",
                                 "tile_cga",
                                 "tile_cga_m",
                                 "tile_cga_n",
                                 "block_size",
                                 "occupancy",
                                 "array_size_per_thread",
                                 "num_c_per_block",
                                 "split_cols",
                                 "tile_rows",
                                 "tile_cols",
                                 "load_size",
                                 "cta_count",
                                 "stream_k",
                                 "split_p_slc",
                                 "tile_m",
                                 "tile_n",
                                 "warp_spec_cfg",
                                 "swap_ab"};

}  // namespace lamina::cudnn::graph
