// Compiled if cudnn.h of version 9 is found. Checks our declarations against that header, and from 9.11 on also the
// numbers of the graph API. Generates no code.

#include <cudnn.h>

#include <algorithm>
#include <type_traits>

#include "lib/backends/cudnn/library/entry_points.h"
#include "types.h"

namespace lamina::cudnn {
namespace {

/// Our form of a type of the header: int for an enumeration, and our own type for an opaque object.
template <class T>
struct Ours {
  using type = std::conditional_t<std::is_enum_v<T>, int, T>;
};
template <class T>
struct Ours<const T> {
  using type = const typename Ours<T>::type;
};
template <class T>
struct Ours<T*> {
  using type = typename Ours<T>::type*;
};
template <class R, class... P>
struct Ours<R(P...)> {
  using type = typename Ours<R>::type(typename Ours<P>::type...);
};
#define LAMINA_CUDNN_OBJECT(theirs, ours)      \
  template <>                                  \
  struct Ours<std::remove_pointer_t<theirs>> { \
    using type = ours;                         \
  }
LAMINA_CUDNN_OBJECT(cudnnHandle_t, HandleObject);
LAMINA_CUDNN_OBJECT(cudnnTensorDescriptor_t, TensorObject);
LAMINA_CUDNN_OBJECT(cudnnFilterDescriptor_t, FilterObject);
LAMINA_CUDNN_OBJECT(cudnnConvolutionDescriptor_t, ConvolutionObject);
LAMINA_CUDNN_OBJECT(cudnnPoolingDescriptor_t, PoolingObject);
LAMINA_CUDNN_OBJECT(cudnnActivationDescriptor_t, ActivationObject);
LAMINA_CUDNN_OBJECT(cudnnLRNDescriptor_t, LrnObject);
LAMINA_CUDNN_OBJECT(cudnnOpTensorDescriptor_t, OpTensorObject);
LAMINA_CUDNN_OBJECT(cudnnDropoutDescriptor_t, DropoutObject);
LAMINA_CUDNN_OBJECT(cudnnRNNDescriptor_t, RnnObject);
LAMINA_CUDNN_OBJECT(cudnnRNNDataDescriptor_t, RnnDataObject);
LAMINA_CUDNN_OBJECT(cudnnConvolutionFwdAlgoPerf_t*, AlgorithmResult);
LAMINA_CUDNN_OBJECT(cudnnConvolutionBwdDataAlgoPerf_t*, AlgorithmResult);
LAMINA_CUDNN_OBJECT(cudnnConvolutionBwdFilterAlgoPerf_t*, AlgorithmResult);

#define LAMINA_CUDNN_SAME(name, ...) \
  static_assert(std::is_same_v<Ours<decltype(::cudnn##name)>::type, __VA_ARGS__>, "cudnn" #name);
LAMINA_CUDNN_ENTRY_POINTS(LAMINA_CUDNN_SAME)

template <class Theirs>
constexpr bool same_result = sizeof(Theirs) == sizeof(AlgorithmResult) &&
                             offsetof(Theirs, algo) == offsetof(AlgorithmResult, algorithm) &&
                             offsetof(Theirs, status) == offsetof(AlgorithmResult, status) &&
                             offsetof(Theirs, time) == offsetof(AlgorithmResult, time) &&
                             offsetof(Theirs, memory) == offsetof(AlgorithmResult, workspace_bytes) &&
                             offsetof(Theirs, determinism) == offsetof(AlgorithmResult, determinism) &&
                             offsetof(Theirs, mathType) == offsetof(AlgorithmResult, math);
static_assert(same_result<cudnnConvolutionFwdAlgoPerf_t> && same_result<cudnnConvolutionBwdDataAlgoPerf_t> &&
              same_result<cudnnConvolutionBwdFilterAlgoPerf_t>);
static_assert(sizeof(cudnnStatus_t) == sizeof(int) && sizeof(cudnnDataType_t) == sizeof(int));

static_assert(ok == CUDNN_STATUS_SUCCESS);
static_assert(data_type::f32 == CUDNN_DATA_FLOAT && data_type::f64 == CUDNN_DATA_DOUBLE);
static_assert(data_type::f16 == CUDNN_DATA_HALF && data_type::bf16 == CUDNN_DATA_BFLOAT16);
static_assert(format::nchw == CUDNN_TENSOR_NCHW && format::nhwc == CUDNN_TENSOR_NHWC);
static_assert(math_type::standard == CUDNN_DEFAULT_MATH && math_type::tensor_op == CUDNN_TENSOR_OP_MATH &&
              math_type::allow_conversion == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION && math_type::fma == CUDNN_FMA_MATH);
static_assert(determinism::none == CUDNN_NON_DETERMINISTIC && determinism::full == CUDNN_DETERMINISTIC);
static_assert(nan::propagate == CUDNN_PROPAGATE_NAN);
static_assert(cross_correlation == CUDNN_CROSS_CORRELATION);
static_assert(activation_mode::sigmoid == CUDNN_ACTIVATION_SIGMOID && activation_mode::relu == CUDNN_ACTIVATION_RELU);
static_assert(activation_mode::tanh == CUDNN_ACTIVATION_TANH);
static_assert(pooling_mode::average_with_padding == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING &&
              pooling_mode::average_without_padding == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING &&
              pooling_mode::max_deterministic == CUDNN_POOLING_MAX_DETERMINISTIC);
static_assert(softmax::accurate == CUDNN_SOFTMAX_ACCURATE && softmax::log == CUDNN_SOFTMAX_LOG &&
              softmax::over_channels == CUDNN_SOFTMAX_MODE_CHANNEL);
static_assert(lrn::across_channels == CUDNN_LRN_CROSS_CHANNEL_DIM1 && lrn::least_size == CUDNN_LRN_MIN_N &&
              lrn::most_size == CUDNN_LRN_MAX_N && lrn::least_k == CUDNN_LRN_MIN_K &&
              lrn::least_beta == CUDNN_LRN_MIN_BETA);
static_assert(batch_norm_spatial == CUDNN_BATCHNORM_SPATIAL);
static_assert(op_tensor_add == CUDNN_OP_TENSOR_ADD);
static_assert(rnn::standard == CUDNN_RNN_ALGO_STANDARD && rnn::persist_static == CUDNN_RNN_ALGO_PERSIST_STATIC &&
              rnn::persist_dynamic == CUDNN_RNN_ALGO_PERSIST_DYNAMIC &&
              rnn::persist_small_h == CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H);
static_assert(rnn::lstm == CUDNN_LSTM && rnn::gru == CUDNN_GRU && rnn::both_biases == CUDNN_RNN_DOUBLE_BIAS &&
              rnn::one_direction == CUDNN_UNIDIRECTIONAL && rnn::linear_input == CUDNN_LINEAR_INPUT &&
              rnn::steps_first == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED &&
              rnn::takes_padding == CUDNN_RNN_PADDED_IO_ENABLED && rnn::inference == CUDNN_FWD_MODE_INFERENCE &&
              rnn::training == CUDNN_FWD_MODE_TRAINING && rnn::add_gradient == CUDNN_WGRAD_MODE_ADD);
static_assert(CUDNN_CONVOLUTION_FWD_ALGO_COUNT == 8 && CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT == 6 &&
              CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT == 7);

}  // namespace
}  // namespace lamina::cudnn

#if CUDNN_VERSION >= 91100
namespace lamina::cudnn::graph {

#define LAMINA_CUDNN_SAME_NUMBER(name, number, theirs) \
  static_assert(static_cast<int>(theirs) == static_cast<int>(name));
LAMINA_CUDNN_KINDS(LAMINA_CUDNN_SAME_NUMBER)
LAMINA_CUDNN_TYPES(LAMINA_CUDNN_SAME_NUMBER)
LAMINA_CUDNN_ATTRIBUTES(LAMINA_CUDNN_SAME_NUMBER)
LAMINA_CUDNN_VALUES(LAMINA_CUDNN_SAME_NUMBER)
#undef LAMINA_CUDNN_SAME_NUMBER

constexpr bool same(int ours, int theirs) { return ours == theirs; }
static_assert(same(forward_alpha + result, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y));
static_assert(same(backward_data_alpha + weights, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W));
static_assert(same(backward_data_alpha + image, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX));
static_assert(same(backward_filter_alpha + descriptor, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC));
static_assert(same(backward_filter_alpha + result, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY));

// Later versions add notes and knobs; existing ones keep their numbers.
static_assert(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC == 4 && CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13 == 8);
static_assert(CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION == 0 && CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API == 3);
static_assert(CUDNN_KNOB_TYPE_TILE_SIZE == 2 && CUDNN_KNOB_TYPE_WORKSPACE == 25);
constexpr auto count_of(std::string_view names) { return 1 + std::count(names.begin(), names.end(), ' '); }
static_assert(count_of(numerical_notes) <= CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
#if CUDNN_VERSION >= 92200
static_assert(CUDNN_KNOB_TYPE_OUTPUT_TMA_ENABLE + 1 == count_of(knobs) && count_of(knobs) <= CUDNN_KNOB_TYPE_COUNTS);
#endif

}  // namespace lamina::cudnn::graph
#endif
