#pragma once
// A cuDNN that computes nothing: a table of functions that record their calls, know every object they made, refuse
// types that the manual does not list (types.h), and give the answers that a test sets.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "lamina/op.h"
#include "lib/backends/cudnn/library/api.h"

namespace lamina::test {

/// The names of calls, without their arguments.
std::vector<std::string> names_of(const std::vector<std::string>& calls);

class Fake {
 public:
  /// The functions of the table use the newest live instance: they have no other way to find it.
  explicit Fake(std::size_t version = 91900);
  ~Fake();
  Fake(const Fake&) = delete;
  Fake& operator=(const Fake&) = delete;

  cudnn::Api api;

  /// "SoftmaxForward(handle, 1, 1, 1, f32 2x4x1x1 / 4 1 1 1, x, 0, f32 2x4x1x1 / 4 1 1 1, y)": descriptors by their
  /// settings, memory by its given name, factors by their numbers.
  std::vector<std::string> calls;
  std::vector<std::string> names() const { return names_of(calls); }
  void forget() { calls.clear(); }

  void name(const void* memory, const std::string& as) { memory_[memory] = as; }
  bool double_factors = false;  ///< whether factors are double, as for f64 tensors

  // The answers that a test sets.
  std::map<std::string, cudnn::Status> status;  ///< by name of the call; given every time
  int fail_call = -1;                           ///< the call of this number, from 0, fails once
  cudnn::Status fail_status = 0;
  std::string fail_call_of;  ///< every call of this name with `fail_algorithm` gives fail_status
  int fail_algorithm = -1;
  std::map<Pass, std::vector<cudnn::AlgorithmResult>> answers;  ///< to queries; by default every algorithm, 0 first
  std::map<int, std::size_t> workspace;                         ///< by algorithm; else 100 bytes times (number + 1)
  std::map<int, cudnn::Status> workspace_status;                ///< by algorithm
  std::string last_error;
  std::size_t rnn_weight_bytes = 4096, rnn_work_bytes = 512, rnn_reserve_bytes = 768;
  std::size_t rnn_place_step = 256;  ///< bytes from one place of GetRNNWeightParams to the next: 8 matrices, 8 biases

  int made = 0, living = 0;  ///< objects
  int count = 0;             ///< calls that could fail, since construction

  /// For the functions of the table.
  template <class... P>
  cudnn::Status answer(const std::string& call, P... p);

 private:
  template <class T>
  std::string text(T value) const;
  double number(const void*) const;
  std::string value_type_;  ///< type of the numbers in the present call
  std::map<const void*, std::string> memory_;
  Fake* before_;
};

/// An object by its settings: "f32 2x4x1x1 / 4 1 1 1".
std::string described(const void* object);

/// An acceptable answer of a query.
cudnn::AlgorithmResult result(int algorithm, std::size_t bytes = 100, int math = cudnn::math_type::fma,
                              int determinism = cudnn::determinism::full, cudnn::Status status = cudnn::ok);

}  // namespace lamina::test
