#pragma once
// Every entry point of cuDNN that is called here: X(name without "cudnn", type of the function).

#include <cstdint>

#include "types.h"

// Entry points that every supported library must have.
#define LAMINA_CUDNN_CORE(X)                                                                        \
  X(GetVersion, std::size_t())                                                                      \
  X(GetErrorString, const char*(Status))                                                            \
  X(Create, Status(HandleObject**))                                                                 \
  X(Destroy, Status(HandleObject*))                                                                 \
  X(SetStream, Status(HandleObject*, Stream))                                                       \
  X(CreateTensorDescriptor, Status(TensorObject**))                                                 \
  X(DestroyTensorDescriptor, Status(TensorObject*))                                                 \
  X(SetTensor4dDescriptorEx, Status(TensorObject*, int, int, int, int, int, int, int, int, int))    \
  X(CreateFilterDescriptor, Status(FilterObject**))                                                 \
  X(DestroyFilterDescriptor, Status(FilterObject*))                                                 \
  X(SetFilter4dDescriptor, Status(FilterObject*, int, int, int, int, int, int))                     \
  X(CreateConvolutionDescriptor, Status(ConvolutionObject**))                                       \
  X(DestroyConvolutionDescriptor, Status(ConvolutionObject*))                                       \
  X(SetConvolution2dDescriptor, Status(ConvolutionObject*, int, int, int, int, int, int, int, int)) \
  X(SetConvolutionGroupCount, Status(ConvolutionObject*, int))                                      \
  X(SetConvolutionMathType, Status(ConvolutionObject*, int))

// Convolutions.
#define LAMINA_CUDNN_CONVOLUTION(X)                                                                                   \
  X(GetConvolutionForwardAlgorithmMaxCount, Status(HandleObject*, int*))                                              \
  X(GetConvolutionBackwardDataAlgorithmMaxCount, Status(HandleObject*, int*))                                         \
  X(GetConvolutionBackwardFilterAlgorithmMaxCount, Status(HandleObject*, int*))                                       \
  X(GetConvolutionForwardAlgorithm_v7, Status(HandleObject*, TensorObject*, FilterObject*, ConvolutionObject*,        \
                                              TensorObject*, int, int*, AlgorithmResult*))                            \
  X(GetConvolutionBackwardDataAlgorithm_v7, Status(HandleObject*, FilterObject*, TensorObject*, ConvolutionObject*,   \
                                                   TensorObject*, int, int*, AlgorithmResult*))                       \
  X(GetConvolutionBackwardFilterAlgorithm_v7, Status(HandleObject*, TensorObject*, TensorObject*, ConvolutionObject*, \
                                                     FilterObject*, int, int*, AlgorithmResult*))                     \
  X(GetConvolutionForwardWorkspaceSize,                                                                               \
    Status(HandleObject*, TensorObject*, FilterObject*, ConvolutionObject*, TensorObject*, int, std::size_t*))        \
  X(GetConvolutionBackwardDataWorkspaceSize,                                                                          \
    Status(HandleObject*, FilterObject*, TensorObject*, ConvolutionObject*, TensorObject*, int, std::size_t*))        \
  X(GetConvolutionBackwardFilterWorkspaceSize,                                                                        \
    Status(HandleObject*, TensorObject*, TensorObject*, ConvolutionObject*, FilterObject*, int, std::size_t*))        \
  X(ConvolutionForward, Status(HandleObject*, const void*, TensorObject*, const void*, FilterObject*, const void*,    \
                               ConvolutionObject*, int, void*, std::size_t, const void*, TensorObject*, void*))       \
  X(ConvolutionBiasActivationForward,                                                                                 \
    Status(HandleObject*, const void*, TensorObject*, const void*, FilterObject*, const void*, ConvolutionObject*,    \
           int, void*, std::size_t, const void*, TensorObject*, const void*, TensorObject*, const void*,              \
           ActivationObject*, TensorObject*, void*))                                                                  \
  X(ConvolutionBackwardData,                                                                                          \
    Status(HandleObject*, const void*, FilterObject*, const void*, TensorObject*, const void*, ConvolutionObject*,    \
           int, void*, std::size_t, const void*, TensorObject*, void*))                                               \
  X(ConvolutionBackwardFilter,                                                                                        \
    Status(HandleObject*, const void*, TensorObject*, const void*, TensorObject*, const void*, ConvolutionObject*,    \
           int, void*, std::size_t, const void*, FilterObject*, void*))                                               \
  X(ConvolutionBackwardBias,                                                                                          \
    Status(HandleObject*, const void*, TensorObject*, const void*, const void*, TensorObject*, void*))

// All other computations.
#define LAMINA_CUDNN_OPS(X)                                                                                            \
  X(CreateActivationDescriptor, Status(ActivationObject**))                                                            \
  X(DestroyActivationDescriptor, Status(ActivationObject*))                                                            \
  X(SetActivationDescriptor, Status(ActivationObject*, int, int, double))                                              \
  X(ActivationForward, Status(HandleObject*, ActivationObject*, const void*, TensorObject*, const void*, const void*,  \
                              TensorObject*, void*))                                                                   \
  X(ActivationBackward,                                                                                                \
    Status(HandleObject*, ActivationObject*, const void*, TensorObject*, const void*, TensorObject*, const void*,      \
           TensorObject*, const void*, const void*, TensorObject*, void*))                                             \
  X(CreatePoolingDescriptor, Status(PoolingObject**))                                                                  \
  X(DestroyPoolingDescriptor, Status(PoolingObject*))                                                                  \
  X(SetPooling2dDescriptor, Status(PoolingObject*, int, int, int, int, int, int, int, int))                            \
  X(PoolingForward,                                                                                                    \
    Status(HandleObject*, PoolingObject*, const void*, TensorObject*, const void*, const void*, TensorObject*, void*)) \
  X(PoolingBackward, Status(HandleObject*, PoolingObject*, const void*, TensorObject*, const void*, TensorObject*,     \
                            const void*, TensorObject*, const void*, const void*, TensorObject*, void*))               \
  X(CreateLRNDescriptor, Status(LrnObject**))                                                                          \
  X(DestroyLRNDescriptor, Status(LrnObject*))                                                                          \
  X(SetLRNDescriptor, Status(LrnObject*, unsigned, double, double, double))                                            \
  X(LRNCrossChannelForward, Status(HandleObject*, LrnObject*, int, const void*, TensorObject*, const void*,            \
                                   const void*, TensorObject*, void*))                                                 \
  X(LRNCrossChannelBackward,                                                                                           \
    Status(HandleObject*, LrnObject*, int, const void*, TensorObject*, const void*, TensorObject*, const void*,        \
           TensorObject*, const void*, const void*, TensorObject*, void*))                                             \
  X(SoftmaxForward,                                                                                                    \
    Status(HandleObject*, int, int, const void*, TensorObject*, const void*, const void*, TensorObject*, void*))       \
  X(SoftmaxBackward, Status(HandleObject*, int, int, const void*, TensorObject*, const void*, TensorObject*,           \
                            const void*, const void*, TensorObject*, void*))                                           \
  X(BatchNormalizationForwardInference,                                                                                \
    Status(HandleObject*, int, const void*, const void*, TensorObject*, const void*, TensorObject*, void*,             \
           TensorObject*, const void*, const void*, const void*, const void*, double))                                 \
  X(BatchNormalizationForwardTraining,                                                                                 \
    Status(HandleObject*, int, const void*, const void*, TensorObject*, const void*, TensorObject*, void*,             \
           TensorObject*, const void*, const void*, double, void*, void*, double, void*, void*))                       \
  X(BatchNormalizationBackward, Status(HandleObject*, int, const void*, const void*, const void*, const void*,         \
                                       TensorObject*, const void*, TensorObject*, const void*, TensorObject*, void*,   \
                                       TensorObject*, const void*, void*, void*, double, const void*, const void*))    \
  X(CreateOpTensorDescriptor, Status(OpTensorObject**))                                                                \
  X(DestroyOpTensorDescriptor, Status(OpTensorObject*))                                                                \
  X(SetOpTensorDescriptor, Status(OpTensorObject*, int, int, int))                                                     \
  X(OpTensor, Status(HandleObject*, OpTensorObject*, const void*, TensorObject*, const void*, const void*,             \
                     TensorObject*, const void*, const void*, TensorObject*, void*))                                   \
  X(AddTensor, Status(HandleObject*, const void*, TensorObject*, const void*, const void*, TensorObject*, void*))      \
  X(TransformTensor,                                                                                                   \
    Status(HandleObject*, const void*, TensorObject*, const void*, const void*, TensorObject*, void*))                 \
  X(SetTensor, Status(HandleObject*, TensorObject*, void*, const void*))                                               \
  X(ScaleTensor, Status(HandleObject*, TensorObject*, void*, const void*))

// Recurrent networks: from 8.0 on.
#define LAMINA_CUDNN_RNN(X)                                                                                          \
  X(SetTensorNdDescriptor, Status(TensorObject*, int, int, const int*, const int*))                                  \
  X(CreateDropoutDescriptor, Status(DropoutObject**))                                                                \
  X(DestroyDropoutDescriptor, Status(DropoutObject*))                                                                \
  X(SetDropoutDescriptor, Status(DropoutObject*, HandleObject*, float, void*, std::size_t, unsigned long long))      \
  X(CreateRNNDescriptor, Status(RnnObject**))                                                                        \
  X(DestroyRNNDescriptor, Status(RnnObject*))                                                                        \
  X(SetRNNDescriptor_v8, Status(RnnObject*, int, int, int, int, int, int, int, int, std::int32_t, std::int32_t,      \
                                std::int32_t, std::int32_t, DropoutObject*, std::uint32_t))                          \
  X(BuildRNNDynamic, Status(HandleObject*, RnnObject*, int))                                                         \
  X(CreateRNNDataDescriptor, Status(RnnDataObject**))                                                                \
  X(DestroyRNNDataDescriptor, Status(RnnDataObject*))                                                                \
  X(SetRNNDataDescriptor, Status(RnnDataObject*, int, int, int, int, int, const int*, void*))                        \
  X(GetRNNWeightSpaceSize, Status(HandleObject*, RnnObject*, std::size_t*))                                          \
  X(GetRNNWeightParams, Status(HandleObject*, RnnObject*, std::int32_t, std::size_t, const void*, std::int32_t,      \
                               TensorObject*, void**, TensorObject*, void**))                                        \
  X(GetRNNTempSpaceSizes, Status(HandleObject*, RnnObject*, int, RnnDataObject*, std::size_t*, std::size_t*))        \
  X(RNNForward, Status(HandleObject*, RnnObject*, int, const std::int32_t*, RnnDataObject*, const void*,             \
                       RnnDataObject*, void*, TensorObject*, const void*, void*, TensorObject*, const void*, void*,  \
                       std::size_t, const void*, std::size_t, void*, std::size_t, void*))                            \
  X(RNNBackwardData_v8,                                                                                              \
    Status(HandleObject*, RnnObject*, const std::int32_t*, RnnDataObject*, const void*, const void*, RnnDataObject*, \
           void*, TensorObject*, const void*, const void*, void*, TensorObject*, const void*, const void*, void*,    \
           std::size_t, const void*, std::size_t, void*, std::size_t, void*))                                        \
  X(RNNBackwardWeights_v8,                                                                                           \
    Status(HandleObject*, RnnObject*, int, const std::int32_t*, RnnDataObject*, const void*, TensorObject*,          \
           const void*, RnnDataObject*, const void*, std::size_t, void*, std::size_t, void*, std::size_t, void*))

// Only in some versions.
#define LAMINA_CUDNN_BY_VERSION(X)                                                    \
  X(GetLastErrorString, void(char*, std::size_t)) /* 9.0 */                           \
  X(GetCudartVersion, std::size_t())                                                  \
  X(BackendCreateDescriptor, Status(int, void**)) /* the graph API: 8.0 */            \
  X(BackendDestroyDescriptor, Status(void*))                                          \
  X(BackendFinalize, Status(void*))                                                   \
  X(BackendSetAttribute, Status(void*, int, int, std::int64_t, const void*))          \
  X(BackendGetAttribute, Status(void*, int, int, std::int64_t, std::int64_t*, void*)) \
  X(BackendExecute, Status(HandleObject*, void*, void*))

#define LAMINA_CUDNN_ENTRY_POINTS(X) \
  LAMINA_CUDNN_CORE(X)               \
  LAMINA_CUDNN_CONVOLUTION(X)        \
  LAMINA_CUDNN_OPS(X)                \
  LAMINA_CUDNN_RNN(X)                \
  LAMINA_CUDNN_BY_VERSION(X)
