// Makes descriptors from specs.

#include "common.h"

#include <limits>

namespace lamina::cudnn {
namespace {

constexpr float float_one = 1, float_zero = 0;
constexpr double double_one = 1, double_zero = 0;

int stride(std::int64_t elements, const Shape& shape) {
  if (elements > std::numeric_limits<int>::max())
    throw Unsupported("cudnn: a tensor of " + to_string(shape) + " has a stride of " + std::to_string(elements) +
                      " elements, which does not fit into the library's descriptors");
  return static_cast<int>(elements);
}

}  // namespace

int data_type_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return data_type::f64;
    case DType::f32: return data_type::f32;
    case DType::f16: return data_type::f16;
    case DType::bf16: return data_type::bf16;
    default: throw Unsupported("cudnn: no " + std::string(to_string(dtype)) + "; its values are f64, f32, f16 or bf16");
  }
}

int compute_type_of(DType dtype) { return dtype == DType::f64 ? data_type::f64 : data_type::f32; }

TensorDescriptor describe(const Api& api, const Shape& shape, DType dtype, Layout layout, std::int64_t pitch) {
  TensorDescriptor tensor(api);
  const auto fit = [&](std::int64_t elements) { return stride(elements, shape); };
  if (layout == Layout::nchw)
    LAMINA_CUDNN(api, SetTensor4dDescriptorEx, tensor.get(), data_type_of(dtype), shape.n, shape.c, shape.h, shape.w,
                 fit(pitch), fit(shape.plane()), shape.w, 1);
  else
    LAMINA_CUDNN(api, SetTensor4dDescriptorEx, tensor.get(), data_type_of(dtype), shape.n, shape.c, shape.h, shape.w,
                 fit(shape.plane() * pitch), 1, fit(shape.w * pitch), fit(pitch));
  return tensor;
}

TensorDescriptor describe_value(const Api& api, const TensorSpec& spec) {
  return describe(api, spec.shape, spec.dtype, spec.layout, spec.pitch);
}

TensorDescriptor describe_gradient(const Api& api, const TensorSpec& spec) {
  return describe(api, spec.shape, spec.dtype, spec.layout, spec.gradient_pitch);
}

TensorDescriptor describe_dense(const Api& api, const TensorSpec& spec) {
  return describe(api, spec.shape, spec.dtype, Layout::nchw, dense_pitch(spec.shape, Layout::nchw));
}

FilterDescriptor describe_filter(const Api& api, const TensorSpec& spec) {
  FilterDescriptor filter(api);
  LAMINA_CUDNN(api, SetFilter4dDescriptor, filter.get(), data_type_of(spec.dtype),
               spec.layout == Layout::nchw ? format::nchw : format::nhwc, spec.shape.n, spec.shape.c, spec.shape.h,
               spec.shape.w);
  return filter;
}

ActivationDescriptor describe_activation(const Api& api, int mode, int nans) {
  ActivationDescriptor activation(api);
  LAMINA_CUDNN(api, SetActivationDescriptor, activation.get(), mode, nans, 0.0);
  return activation;
}

const void* one(DType dtype) { return dtype == DType::f64 ? static_cast<const void*>(&double_one) : &float_one; }
const void* zero(DType dtype) { return dtype == DType::f64 ? static_cast<const void*>(&double_zero) : &float_zero; }

bool is_dense(const Spec& spec) {
  const auto dense = [](const TensorSpec& tensor) {
    const std::int64_t pitch = dense_pitch(tensor.shape, tensor.layout);
    return tensor.pitch == pitch && (tensor.gradient_pitch == pitch || tensor.gradient_pitch == 0);
  };
  return std::ranges::all_of(spec.x, dense) && dense(spec.y);
}

void check_math(const std::string& unit, DType dtype, Math math) {
  if (math == Math::tf32 && dtype != DType::f32)
    throw Unsupported(unit + ": tf32 rounds factors of f32; with " + std::string(to_string(dtype)) +
                      " take strict math");
}

std::size_t extent_bytes(const TensorSpec& spec, std::int64_t pitch) {
  const std::int64_t steps = spec.layout == Layout::nchw ? spec.shape.n : spec.shape.n * spec.shape.plane();
  return static_cast<std::size_t>(steps * pitch) * size_of(spec.dtype);
}

void refuse(const Op& op, const std::string& reason) { throw Unsupported("cudnn: " + to_string(op) + ": " + reason); }

}  // namespace lamina::cudnn
