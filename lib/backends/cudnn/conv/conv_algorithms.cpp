// Makes the alternatives of a convolution's pass from the library's algorithms, for pick().

#include "conv_algorithms.h"

#include <algorithm>
#include <utility>

#include "lib/core/device/math_environment.h"

namespace lamina::cudnn {
namespace {

constexpr Row forward_algorithms[] = {{"implicit_gemm", 0, true}, {"implicit_precomp_gemm", 1, true},
                                      {"gemm", 2, true},          {"direct", 3, true},
                                      {"fft", 4, true},           {"fft_tiling", 5, true},
                                      {"winograd", 6, true},      {"winograd_nonfused", 7, true}};
constexpr Row data_algorithms[] = {{"algo_0", 0, false},         {"algo_1", 1, true},
                                   {"fft", 2, true, false},      {"fft_tiling", 3, true, false},
                                   {"winograd", 4, true, false}, {"winograd_nonfused", 5, true, false}};
constexpr Row params_algorithms[] = {{"algo_0", 0, false},
                                     {"algo_1", 1, true},
                                     {"fft", 2, true, false},
                                     {"algo_3", 3, false},
                                     {"winograd_nonfused", 5, true, false},
                                     {"fft_tiling", 6, true, false}};

/// The math type that the descriptor has while the library is asked for algorithms.
int asked_math(const std::string& unit, const Api& api, DType dtype, Math math) {
  const bool has_fma = at_least(api, 8, 0);
  check_math(unit, dtype, math);
  if (math == Math::tf32) {
    if (!has_fma) throw Unsupported(unit + ": cuDNN " + api.number() + " has no tf32; give 8.0 or later");
    return math_type::tensor_op;
  }
  if (dtype == DType::f64) return math_type::standard;  // there is no narrower product to avoid
  if (is_half(dtype)) return math_type::tensor_op;      // products of halves are exact in f32
  return has_fma ? math_type::fma : math_type::standard;
}

/// Why the math of an answer is refused; empty: it is not. Tensor cores multiply f64 and halves in full precision.
std::string math_refusal(DType dtype, Math asked, int answered) {
  if (answered == math_type::allow_conversion) return "would round to 16 bits";
  if (dtype != DType::f32) return {};
  if (asked == Math::strict && answered == math_type::tensor_op) return "would take tensor cores, not strict math";
  return {};
}

/// The alternatives of one pass for pick().
struct Rows {
  ConvProblem& problem;
  DType dtype;
  const Choice& choice;
  int math;
  bool adds;
  std::size_t own_bytes;
  std::string_view suffix;  ///< end of the names of fused calls; empty for plain calls
  const std::function<Lowered::Step(const Taken&)>& make;

  /// First the library's answers, then the rows that have no answer or a refusal. These rows are taken by name only,
  /// and so is every row with a suffix.
  std::vector<Alternative> answered() const {
    const bool named = !choice.algorithm[static_cast<std::size_t>(problem.pass())].empty();
    std::vector<Alternative> all;
    std::vector<int> seen;
    for (const AlgorithmResult& answer : problem.ask()) {
      const auto known = conv_algorithms(problem.pass());
      const auto row = std::ranges::find(known, answer.algorithm, &Row::number);
      if (row == known.end()) continue;
      Alternative next = alternative(*row, &answer);
      if (answer.status != ok)
        next.refusal = next.algorithm + ": " + name(problem.api(), answer.status);
      else if (adds && !row->adds && !named)
        next.refusal = next.algorithm + ": may refuse to add to a gradient while it runs; give its name to take it";
      if (answer.status == ok) seen.push_back(row->number);
      all.push_back(std::move(next));
    }
    for (const Row& row : conv_algorithms(problem.pass())) {
      if (std::ranges::find(seen, row.number) != seen.end()) continue;
      all.push_back(alternative(row, nullptr));
      all.back().place = by_name_only;
    }
    for (Alternative& each : all)
      if (!suffix.empty()) each.place = by_name_only;
    return all;
  }

  /// The rows without a device: the library cannot be asked.
  std::vector<Alternative> unasked() const {
    std::vector<Alternative> all;
    if (suffix.empty()) all.push_back(without_device("heuristic", choice.deterministic));
    for (const Row& row : conv_algorithms(problem.pass())) {
      all.push_back(without_device(row.name + std::string(suffix), row.deterministic));
      all.back().place = by_name_only;
    }
    return all;
  }

  Alternative alternative(const Row& row, const AlgorithmResult* answer) const {
    Taken taken{{row.name + std::string(suffix)}, row.number, !suffix.empty()};
    Alternative next{taken.name, no_bound, {}, "the first of cuDNN's heuristic"};
    taken.deterministic = row.deterministic && (answer == nullptr || answer->determinism == determinism::full);
    int own_math = math;
    if (answer != nullptr) {
      if (const std::string reason = math_refusal(dtype, choice.math, answer->math); !reason.empty())
        next.refusal = next.algorithm + ": " + reason;
      // In strict math the answer's math is not used: standard math would allow TF32.
      if (choice.math == Math::tf32 || is_half(dtype)) own_math = answer->math;
    }
    taken.math = choice.math == Math::tf32 && own_math != math_type::fma ? Math::tf32 : Math::strict;
    next.make_step = [this, taken, own_math] { return step_of(taken, own_math); };
    return next;
  }

  Lowered::Step step_of(Taken taken, int own_math) const {
    problem.set_math(own_math);
    if (const Status status = problem.workspace(taken.number, taken.workspace_bytes); status != ok) {
      if (!refused(problem.api(), status))
        check(problem.api(), status, "the query for its workspace", __FILE__, __LINE__);
      Lowered::Step none;
      none.reason = taken.name + ": " + text(problem.api(), status);
      return none;
    }
    return make(taken);
  }

  Alternative without_device(const std::string& name, bool deterministic) const {
    const std::size_t limit = choice.workspace_limit;
    const std::size_t left = own_bytes == 0 ? limit : (limit - std::min(own_bytes, limit)) & ~(block_alignment - 1);
    const Taken taken{{name, nullptr, deterministic, choice.math}, 0, !suffix.empty(), left, false};
    return {name, no_bound, [this, taken] { return make(taken); }, "the first of cuDNN's heuristic"};
  }
};

}  // namespace

std::span<const Row> conv_algorithms(Pass pass) {
  switch (pass) {
    case Pass::forward: return forward_algorithms;
    case Pass::backward_params: return params_algorithms;
    case Pass::backward_data: return data_algorithms;
    default: return {};
  }
}

bool has_fused_call(const Spec& spec) {
  const ConvUnit c = conv_unit(spec);
  return c.values == DType::f32 && c.relu && c.has_bias() && (!c.add || same_pitch(spec, 1));
}

std::vector<std::string> conv_algorithm_names(const Spec& spec, Pass pass) {
  std::vector<std::string> names;
  for (const Row& algorithm : conv_algorithms(pass)) names.emplace_back(algorithm.name);
  if (pass == Pass::forward && has_fused_call(spec))
    for (const Row& algorithm : conv_algorithms(pass)) names.push_back(algorithm.name + std::string(fused_suffix));
  return names;
}

Lowered::Step pick_conv(const std::string& unit, const Spec& spec, ConvProblem& problem, const Choice& choice,
                        bool adds, std::size_t own_bytes, Session& session,
                        const std::function<Lowered::Step(const Taken&)>& make) {
  const Pass pass = problem.pass();
  const std::string where = unit + ", " + std::string(to_string(pass));
  const std::string& named = choice.algorithm[static_cast<std::size_t>(pass)];
  check_math_environment(where, spec.y.dtype, choice.math, Products::of_cudnn);
  const int math = asked_math(where, problem.api(), spec.y.dtype, choice.math);
  const bool fused = named.ends_with(fused_suffix) && pass == Pass::forward && has_fused_call(spec);
  if (fused && problem.api().ConvolutionBiasActivationForward == nullptr)
    throw Unsupported(where + ": cuDNN " + problem.api().number() + " has no call for " + named);
  const Rows rows{problem, spec.y.dtype, choice, math, adds, own_bytes, fused ? fused_suffix : "", make};
  std::vector<Alternative> all;
  const auto make_engine = [&](const graph::TakenEngine& taken) {
    return make({taken, 0, taken.name.ends_with(fused_suffix), taken.plan->workspace_bytes});
  };
  if (session.engines != nullptr) all = session.engines->alternatives(spec, pass, choice, session, make_engine);
  if (session.has_device()) problem.set_math(math);
  for (Alternative& row : session.has_device() ? rows.answered() : rows.unasked()) all.push_back(std::move(row));
  Lowered::Step picked = pick(unit, pass, choice, all);
  if (session.engines != nullptr) session.engines->complain(picked);
  return picked;
}

}  // namespace lamina::cudnn
