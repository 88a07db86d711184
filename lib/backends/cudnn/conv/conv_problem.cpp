// The descriptors of one pass of a convolution, and the library's queries about it.

#include "conv_algorithms.h"

namespace lamina::cudnn {

ConvProblem::ConvProblem(const Conv& op, const Spec& spec, Pass pass, TensorDescriptor image, TensorDescriptor result,
                         Session& session)
    : session_(session),
      api_(session.api()),
      pass_(pass),
      image_(std::move(image)),
      result_(std::move(result)),
      filter_(describe_filter(api_, spec.w.at(0))),
      convolution_(api_) {
  LAMINA_CUDNN(api_, SetConvolution2dDescriptor, convolution_.get(), op.pad.h, op.pad.w, op.stride.h, op.stride.w,
               op.dilation.h, op.dilation.w, convolution_mode::cross_correlation, compute_type_of(spec.y.dtype));
  LAMINA_CUDNN(api_, SetConvolutionGroupCount, convolution_.get(), op.groups);
}

void ConvProblem::set_math(int math) { LAMINA_CUDNN(api_, SetConvolutionMathType, convolution_.get(), math); }

std::vector<AlgorithmResult> ConvProblem::ask() const {
  HandleObject* const handle = session_.handle();
  int most = 0, count = 0;
  const auto count_of = [&](auto function, const char* name) {
    check(api_, need(api_, function, name)(handle, &most), name, __FILE__, __LINE__);
    return std::vector<AlgorithmResult>(static_cast<std::size_t>(std::max(most, 1)));
  };
  std::vector<AlgorithmResult> answers;
  switch (pass_) {
    case Pass::forward:
      answers = count_of(api_.GetConvolutionForwardAlgorithmMaxCount, "cudnnGetConvolutionForwardAlgorithmMaxCount");
      LAMINA_CUDNN(api_, GetConvolutionForwardAlgorithm_v7, handle, image(), filter(), convolution(), result(), most,
                   &count, answers.data());
      break;
    case Pass::backward_params:
      answers = count_of(api_.GetConvolutionBackwardFilterAlgorithmMaxCount,
                         "cudnnGetConvolutionBackwardFilterAlgorithmMaxCount");
      LAMINA_CUDNN(api_, GetConvolutionBackwardFilterAlgorithm_v7, handle, image(), result(), convolution(), filter(),
                   most, &count, answers.data());
      break;
    default:
      answers = count_of(api_.GetConvolutionBackwardDataAlgorithmMaxCount,
                         "cudnnGetConvolutionBackwardDataAlgorithmMaxCount");
      LAMINA_CUDNN(api_, GetConvolutionBackwardDataAlgorithm_v7, handle, filter(), result(), convolution(), image(),
                   most, &count, answers.data());
  }
  session_.check_parts(Use::query);
  answers.resize(static_cast<std::size_t>(std::clamp(count, 0, most)));
  return answers;
}

Status ConvProblem::workspace(int algorithm, std::size_t& bytes) const {
  HandleObject* const handle = session_.handle();
  switch (pass_) {
    case Pass::forward:
      return need(api_, api_.GetConvolutionForwardWorkspaceSize, "cudnnGetConvolutionForwardWorkspaceSize")(
          handle, image(), filter(), convolution(), result(), algorithm, &bytes);
    case Pass::backward_params:
      return need(api_, api_.GetConvolutionBackwardFilterWorkspaceSize,
                  "cudnnGetConvolutionBackwardFilterWorkspaceSize")(handle, image(), result(), convolution(), filter(),
                                                                    algorithm, &bytes);
    default:
      return need(api_, api_.GetConvolutionBackwardDataWorkspaceSize, "cudnnGetConvolutionBackwardDataWorkspaceSize")(
          handle, filter(), result(), convolution(), image(), algorithm, &bytes);
  }
}

}  // namespace lamina::cudnn
