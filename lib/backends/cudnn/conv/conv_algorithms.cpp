// The library's algorithms of a convolution, and which one a Choice takes.

#include "conv_algorithms.h"

#include <algorithm>

#include "lib/backends/common/conv_tail.h"
#include "lib/backends/cudnn/library/status.h"
#include "lib/core/device/math_environment.h"

namespace lamina::cudnn {
namespace {

constexpr Algorithm forward_algorithms[] = {{"implicit_gemm", 0, true}, {"implicit_precomp_gemm", 1, true},
                                            {"gemm", 2, true},          {"direct", 3, true},
                                            {"fft", 4, true},           {"fft_tiling", 5, true},
                                            {"winograd", 6, true},      {"winograd_nonfused", 7, true}};
constexpr Algorithm data_algorithms[] = {{"algo_0", 0, false},         {"algo_1", 1, true},
                                         {"fft", 2, true, false},      {"fft_tiling", 3, true, false},
                                         {"winograd", 4, true, false}, {"winograd_nonfused", 5, true, false}};
constexpr Algorithm params_algorithms[] = {{"algo_0", 0, false},
                                           {"algo_1", 1, true},
                                           {"fft", 2, true, false},
                                           {"algo_3", 3, false},
                                           {"winograd_nonfused", 5, true, false},
                                           {"fft_tiling", 6, true, false}};

/// The math type for the query: the descriptor's initial one.
int asked_math(const std::string& unit, const Api& api, DType dtype, Math math) {
  const bool has_fma = at_least(api, 8, 0);
  check_math(unit, dtype, math);
  switch (math) {
    case Math::strict:
      if (dtype == DType::f64) return math_type::standard;  // there is no narrower product to avoid
      if (is_half(dtype)) return math_type::tensor_op;      // products of halves are exact in f32
      return has_fma ? math_type::fma : math_type::standard;
    case Math::tf32:
      if (!has_fma) throw Unsupported(unit + ": cuDNN " + api.number() + " has no tf32; give 8.0 or later");
      return math_type::tensor_op;
  }
  throw UsageError(unit + ": no such math: " + std::to_string(static_cast<int>(math)));
}

/// Why the math of an answer is not acceptable, or empty. Tensor cores multiply f64 in full precision, and halves.
std::string math_refusal(DType dtype, Math asked, int answered) {
  if (answered == math_type::allow_conversion) return "would round to 16 bits";
  if (dtype != DType::f32) return {};
  if (asked == Math::strict && answered == math_type::tensor_op) return "would take tensor cores, not strict math";
  return {};
}

class Picker {
 public:
  Picker(std::string unit, ConvProblem& problem, DType dtype, const Choice& choice, bool adds, std::size_t own_bytes)
      : unit_(std::move(unit)),
        problem_(problem),
        dtype_(dtype),
        choice_(choice),
        adds_(adds),
        own_bytes_(own_bytes),
        math_(asked_math(unit_, problem.api(), dtype, choice.math)) {}

  Taken named(const Algorithm& algorithm) {
    problem_.set_math(math_);
    bool answered = false;
    Taken taken;
    for (const AlgorithmResult& answer : problem_.ask()) {
      if (answer.algorithm != algorithm.number || answer.status != ok) continue;
      answered = true;
      if (fits(algorithm, &answer, taken)) return taken;
    }
    if (answered || !fits(algorithm, nullptr, taken)) throw_refused();
    return taken;
  }

  Taken first() {
    problem_.set_math(math_);
    for (const AlgorithmResult& answer : problem_.ask()) {
      const Algorithm* const algorithm = find(answer.algorithm);
      if (algorithm == nullptr) continue;
      if (answer.status != ok) {
        note(*algorithm, name(problem_.api(), answer.status));
        continue;
      }
      if (adds_ && !algorithm->adds) {
        note(*algorithm, "may refuse to add to a gradient while it runs; give its name to take it");
        continue;
      }
      Taken taken;
      if (fits(*algorithm, &answer, taken)) return taken;
    }
    throw_refused();
  }

 private:
  const Algorithm* find(int number) const {
    for (const Algorithm& algorithm : conv_algorithms(problem_.pass()))
      if (algorithm.number == number) return &algorithm;
    return nullptr;
  }

  void note(const Algorithm& algorithm, const std::string& reason) {
    reasons_ += (reasons_.empty() ? "" : "; ") + std::string(algorithm.name) + ": " + reason;
  }

  bool fits(const Algorithm& algorithm, const AlgorithmResult* answer, Taken& taken) {
    int set_math = math_;
    const bool sure = algorithm.deterministic && (answer == nullptr || answer->determinism == determinism::full);
    if (choice_.deterministic && !sure) return note(algorithm, "its sums are in no fixed order"), false;
    if (answer != nullptr) {
      if (const std::string reason = math_refusal(dtype_, choice_.math, answer->math); !reason.empty())
        return note(algorithm, reason), false;
      // Strict stays strict: an answer with standard math would allow TF32.
      if (choice_.math == Math::tf32 || is_half(dtype_)) problem_.set_math(set_math = answer->math);
    }
    std::size_t bytes = 0;
    if (const Status status = problem_.workspace(algorithm.number, bytes); status != ok) {
      if (!refused(problem_.api(), status))
        check(problem_.api(), status, "its question for workspace", __FILE__, __LINE__);
      return note(algorithm, text(problem_.api(), status)), false;
    }
    if (const std::size_t needed = with_own(bytes, own_bytes_); needed > choice_.workspace_limit)
      return note(algorithm, "needs " + std::to_string(needed) + " bytes of workspace, the limit is " +
                                 std::to_string(choice_.workspace_limit)),
             false;
    taken = {.name = algorithm.name,
             .number = algorithm.number,
             .workspace_bytes = bytes,
             .deterministic = sure,
             .math = choice_.math == Math::tf32 && set_math != math_type::fma ? Math::tf32 : Math::strict};
    return true;
  }

  [[noreturn]] void throw_refused() const {
    throw Unsupported(unit_ + ": " + (reasons_.empty() ? "the library offers no algorithm" : reasons_));
  }

  std::string unit_, reasons_;
  ConvProblem& problem_;
  DType dtype_;
  const Choice& choice_;
  bool adds_;
  std::size_t own_bytes_;
  int math_;
};

}  // namespace

std::span<const Algorithm> conv_algorithms(Pass pass) {
  switch (pass) {
    case Pass::forward: return forward_algorithms;
    case Pass::backward_params: return params_algorithms;
    case Pass::backward_data: return data_algorithms;
    default: return {};
  }
}

bool has_fused_call(const Spec& spec) {
  const ConvTail tail = conv_tail(spec);
  const bool has_bias = std::get<Conv>(spec.op).bias || tail.norm != nullptr;
  return spec.y.dtype == DType::f32 && tail.relu && has_bias && (!tail.add || same_pitch(spec, 1));
}

std::vector<std::string> conv_algorithm_names(const Spec& spec, Pass pass) {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : conv_algorithms(pass)) names.emplace_back(algorithm.name);
  if (pass == Pass::forward && has_fused_call(spec))
    for (const Algorithm& algorithm : conv_algorithms(pass))
      names.push_back(algorithm.name + std::string(fused_suffix));
  return names;
}

Taken take(const std::string& unit, const Spec& spec, ConvProblem& problem, const Choice& choice, bool adds,
           std::size_t own_bytes, Session& session) {
  const std::string where = unit + ", " + std::string(to_string(problem.pass()));
  const std::string& name = choice.algorithm[static_cast<std::size_t>(problem.pass())];
  const std::vector<std::string> names = conv_algorithm_names(spec, problem.pass());
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) {
    std::string known;
    for (const std::string& one : names) known += (known.empty() ? "" : ", ") + one;
    throw UsageError(where + ": unknown algorithm '" + name + "'; there are " + known);
  }
  check_math_environment(where, spec.y.dtype, choice.math, Products::of_cudnn);
  if (choice.max_error < std::numeric_limits<double>::infinity())
    throw Unsupported(where + ": no bound on the error of its algorithms is documented; leave max_error out");
  const bool fused = name.ends_with(fused_suffix);
  if (fused && problem.api().ConvolutionBiasActivationForward == nullptr)
    throw Unsupported(where + ": cuDNN " + problem.api().number() + " has no call for " + name);
  const auto known = conv_algorithms(problem.pass());
  const auto named = std::find_if(known.begin(), known.end(), [&](const Algorithm& a) {
    return a.name == std::string_view(name).substr(0, name.size() - (fused ? fused_suffix.size() : 0));
  });
  Picker picker(where, problem, spec.y.dtype, choice, adds, own_bytes);
  if (!session.has_device())
    return {.name = name.empty() ? "heuristic" : name,
            .fused = fused,
            .workspace_bytes = own_bytes == 0 ? choice.workspace_limit
                                              : (choice.workspace_limit - std::min(own_bytes, choice.workspace_limit)) &
                                                    ~(block_alignment - 1),
            .exact = false,
            .deterministic = name.empty() ? choice.deterministic : named->deterministic,
            .math = choice.math};
  if (name.empty()) return picker.first();
  Taken taken = picker.named(*named);
  taken.name = name;
  taken.fused = fused;
  return taken;
}

}  // namespace lamina::cudnn
