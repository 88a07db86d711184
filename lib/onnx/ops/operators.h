#pragma once
// The operators, a function for each: from a node of the file to nodes of the graph. Files are groups of operators.

#include <cstdint>
#include <string>

#include "lib/onnx/importer.h"

namespace lamina::onnx {

// conv.cpp
void import_conv(Call&);
// conv_transpose.cpp
void import_conv_transpose(Call&);
// pool.cpp
void import_max_pool(Call&);
void import_average_pool(Call&);
void import_global_average_pool(Call&);
void import_global_max_pool(Call&);
void import_reduce_mean(Call&);
// linear.cpp
void import_gemm(Call&);
void import_matmul(Call&);
// normalisation.cpp
void import_batch_norm(Call&);
void import_softmax(Call&);
void import_dropout(Call&);
// lrn.cpp
void import_lrn(Call&);
// elementwise.cpp
void import_relu(Call&);
void import_sigmoid(Call&);
void import_hard_sigmoid(Call&);
void import_hard_swish(Call&);
void import_tanh(Call&);
void import_clip(Call&);
void import_add(Call&);
void import_sum(Call&);
void import_affine(Call&);  ///< Sub, Mul, Div
void import_pow(Call&);
void import_cast(Call&);
// channels.cpp
void import_concat(Call&);
void import_split(Call&);
void import_slice(Call&);
// shape.cpp
void import_identity(Call&);
void import_shape(Call&);
void import_size(Call&);
void import_reshape(Call&);
void import_flatten(Call&);
void import_squeeze(Call&);
void import_unsqueeze(Call&);
void import_transpose(Call&);
void import_pad(Call&);
void import_if(Call&);
void import_folded(Call&);  ///< operators on constants alone
// sequence.cpp
void import_lstm(Call&);
void import_gather(Call&);

/// The value if its axes in the file are the graph's n, c, h, w (or n, c, h with w 1); else a Refusal.
Value as_image(const Running&);

/// Which axis of the file is the graph's whole channel axis; Refusal if none is.
std::size_t channel_axis(const Running&);

/// The view of an equal value with other channels; Refusal if its channels are joined with something.
View with_channels(const View&, const Shape& before, const Shape& after);

/// y = scale x + shift by channel, as a convolution of one weight per channel.
void append_affine(Call&, const Running&, Call::Affine, ElementType);

/// A number of the file as an int; FileError that names it if it is out of range.
int narrow(const Call&, std::int64_t number, std::int64_t least, std::string_view what);

}  // namespace lamina::onnx
