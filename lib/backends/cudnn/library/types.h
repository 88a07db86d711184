#pragma once
// The part of cuDNN's C interface that is called here: objects, numbers, results of a query. We declare it, so that the
// backend is compiled on every machine, and for every version at once. If cudnn.h is found, header_check.cpp compares
// it with these declarations. Where it has an enumeration, we have an int: a C call passes both alike.

#include <cstddef>

struct CUstream_st;

namespace lamina::cudnn {

/// 0 is success in every version. Every other number has one meaning up to 8 and another from 9 on: see call.h.
using Status = int;
constexpr Status ok = 0;

// Objects of the library, known only by address.
struct HandleObject;
struct TensorObject;
struct FilterObject;
struct ConvolutionObject;
struct PoolingObject;
struct ActivationObject;
struct LrnObject;
struct OpTensorObject;
struct DropoutObject;
struct RnnObject;
struct RnnDataObject;
using Stream = CUstream_st*;  ///< the CUDA runtime's cudaStream_t

/// The answer of a query for one convolution algorithm. It is the same for all three passes in 7, 8 and 9.
struct AlgorithmResult {
  int algorithm;
  Status status;  ///< success, or the reason
  float time;     ///< milliseconds; -1 from a query that times nothing
  std::size_t workspace_bytes;
  int determinism;
  int math;
  int reserved[3];
};

// The numbers of enumerators. They are the same in 7, 8 and 9 unless noted.
namespace data_type {
constexpr int f32 = 0, f64 = 1, f16 = 2, bf16 = 9;  ///< bf16: 8.1
}
namespace format {
constexpr int nchw = 0, nhwc = 1;
}
namespace math_type {
constexpr int standard = 0;          ///< 7: no tensor cores; 8 and later: fp32 may be rounded to TF32
constexpr int tensor_op = 1;         ///< tensor cores; 8 and later: in TF32 for fp32
constexpr int allow_conversion = 2;  ///< 7.2: fp32 may even be rounded to 16 bits
constexpr int fma = 3;               ///< 8.0: no tensor cores
}  // namespace math_type
namespace determinism {
constexpr int none = 0, full = 1;
}
namespace nan {
constexpr int dont_propagate = 0, propagate = 1;
}
constexpr int cross_correlation = 1;   ///< mode of a convolution
constexpr int batch_norm_spatial = 1;  ///< mode
constexpr int op_tensor_add = 0;
namespace activation_mode {
constexpr int sigmoid = 0, relu = 1, tanh = 2;
}
namespace pooling_mode {
constexpr int average_with_padding = 1, average_without_padding = 2, max_deterministic = 3;
}
namespace softmax {
constexpr int accurate = 1, log = 2;  ///< algorithms: softmax of x - max; its logarithm
constexpr int over_channels = 1;      ///< mode
}  // namespace softmax
namespace lrn {
constexpr int across_channels = 0;  ///< mode
constexpr unsigned least_size = 1, most_size = 16;
constexpr double least_k = 1e-5, least_beta = 0.01;
}  // namespace lrn
namespace rnn {
constexpr int standard = 0, persist_static = 1, persist_dynamic = 2, persist_small_h = 3;  ///< algorithms
constexpr int lstm = 2, gru = 3;                                                           ///< cells
constexpr int both_biases = 2;  ///< biases of the products with x and with h
constexpr int one_direction = 0;
constexpr int linear_input = 0;
constexpr int steps_first = 0;         ///< layout: steps, images, features; every sequence of the same length
constexpr unsigned takes_padding = 1;  ///< flag that this layout needs
constexpr int inference = 0, training = 1;
constexpr int add_gradient = 0;
}  // namespace rnn

}  // namespace lamina::cudnn
