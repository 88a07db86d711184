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
               op.dilation.h, op.dilation.w, cross_correlation, compute_type_of(spec.y.dtype));
  LAMINA_CUDNN(api_, SetConvolutionGroupCount, convolution_.get(), op.groups);
}

void ConvProblem::set_math(int math) { LAMINA_CUDNN(api_, SetConvolutionMathType, convolution_.get(), math); }

/// Calls ask(name of the pass, the library's three queries about it, the descriptors in the order of their arguments).
template <class Ask>
auto ConvProblem::with_questions(const Ask& ask) const {
  switch (pass_) {
    case Pass::forward:
      return ask("Forward", api_.GetConvolutionForwardAlgorithmMaxCount, api_.GetConvolutionForwardAlgorithm_v7,
                 api_.GetConvolutionForwardWorkspaceSize, image(), filter(), result());
    case Pass::backward_params:
      return ask("BackwardFilter", api_.GetConvolutionBackwardFilterAlgorithmMaxCount,
                 api_.GetConvolutionBackwardFilterAlgorithm_v7, api_.GetConvolutionBackwardFilterWorkspaceSize, image(),
                 result(), filter());
    default:
      return ask("BackwardData", api_.GetConvolutionBackwardDataAlgorithmMaxCount,
                 api_.GetConvolutionBackwardDataAlgorithm_v7, api_.GetConvolutionBackwardDataWorkspaceSize, filter(),
                 result(), image());
  }
}

std::vector<AlgorithmResult> ConvProblem::ask() const {
  HandleObject* const handle = session_.handle();
  return with_questions([&](const std::string& pass, auto most_of, auto algorithms, auto, auto* a, auto* b, auto* c) {
    const auto call = [&](const std::string& end, auto function, auto... arguments) {
      const std::string name = "cudnnGetConvolution" + pass + "Algorithm" + end;
      check(api_, need(api_, function, name.c_str())(handle, arguments...), name.c_str(), __FILE__, __LINE__);
    };
    int most = 0, count = 0;
    call("MaxCount", most_of, &most);
    std::vector<AlgorithmResult> answers(static_cast<std::size_t>(std::max(most, 1)));
    call("_v7", algorithms, a, b, convolution(), c, most, &count, answers.data());
    session_.check_parts(Use::query);
    answers.resize(static_cast<std::size_t>(std::clamp(count, 0, most)));
    return answers;
  });
}

Status ConvProblem::workspace(int algorithm, std::size_t& bytes) const {
  HandleObject* const handle = session_.handle();
  return with_questions([&](const std::string& pass, auto, auto, auto bytes_of, auto* a, auto* b, auto* c) {
    const std::string name = "cudnnGetConvolution" + pass + "WorkspaceSize";
    return need(api_, bytes_of, name.c_str())(handle, a, b, convolution(), c, algorithm, &bytes);
  });
}

}  // namespace lamina::cudnn
