#pragma once
// A fake cuDNN that computes nothing. Its functions record their calls and objects, refuse types that the manual does
// not list (types.h), and return the answers that a test sets.

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
  /// The functions of the table use the newest living instance.
  explicit Fake(std::size_t version = 91900);
  ~Fake();
  Fake(const Fake&) = delete;
  Fake& operator=(const Fake&) = delete;

  cudnn::Api api;

  /// Recorded calls: "SoftmaxForward(handle, 1, 1, 1, f32 2x4x1x1 / 4 1 1 1, x, 0, f32 2x4x1x1 / 4 1 1 1, y)". A
  /// descriptor is written as its settings, memory as its given name, a factor as its value.
  std::vector<std::string> calls;
  std::vector<std::string> names() const { return names_of(calls); }
  void forget() { calls.clear(); }

  void name(const void* memory, const std::string& as) { memory_[memory] = as; }
  bool double_factors = false;  ///< whether factors are double, as for f64 tensors

  // The answers that a test sets.
  std::map<std::string, cudnn::Status> status;  ///< status of each call with this name
  int fail_call = -1;                           ///< number of the call that fails once, from 0
  cudnn::Status fail_status = 0;
  std::string fail_call_of;  ///< name of the calls that give fail_status for `fail_algorithm`
  int fail_algorithm = -1;
  std::map<Pass, std::vector<cudnn::AlgorithmResult>> answers;  ///< answers to queries; default: all algorithms, from 0
  std::map<int, std::size_t> workspace;                         ///< bytes by algorithm; default: 100 * (algorithm + 1)
  std::map<int, cudnn::Status> workspace_status;                ///< status of the workspace query, by algorithm
  std::string last_error;
  std::size_t rnn_weight_bytes = 4096, rnn_work_bytes = 512, rnn_reserve_bytes = 768;
  std::size_t rnn_place_step = 256;  ///< bytes between the addresses from GetRNNWeightParams: 8 matrices, 8 biases

  int made = 0, living = 0;  ///< numbers of objects
  int count = 0;             ///< number of calls that could fail, since construction

  /// Called by the functions of the table.
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

/// The settings of an object: "f32 2x4x1x1 / 4 1 1 1".
std::string described(const void* object);

/// An answer to a query, by default one that strict math accepts.
cudnn::AlgorithmResult result(int algorithm, std::size_t bytes = 100, int math = cudnn::math_type::fma,
                              int determinism = cudnn::determinism::full, cudnn::Status status = cudnn::ok);

}  // namespace lamina::test
