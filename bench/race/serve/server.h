#pragma once
// The worker's side of a race: its work, and the requests that it answers. lamina_bench serve and onednn_worker are
// workers of bench/race/race, which lets one worker run one pass at a time. For convolutions: their text in requests,
// the values in their tensors, and the timing of a pass.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/options/settings.h"
#include "bench/timing/stopwatch.h"
#include "lamina/error.h"

namespace lamina::bench {

/// The work of a request, ready for any number of runs.
class Served {
 public:
  virtual ~Served() = default;
  virtual void warm_up() = 0;
  virtual nlohmann::json facts() const = 0;  ///< facts about the work
  virtual nlohmann::json pass() = 0;         ///< runs a timed pass; gives its seconds and its processor time
  /// Runs the work once, and gives the results.
  virtual std::vector<float> result() { throw UsageError("numbers of networks are compared by tests/torch"); }
};

/// The value among `known` with this name. Throws UsageError for an unknown name.
template <class T>
T named(const char* what, const std::string& name, std::initializer_list<T> known) {
  std::string names;
  for (const T each : known) {
    if (name == to_string(each)) return each;
    names += " " + std::string(to_string(each));
  }
  throw UsageError("no " + std::string(what) + " '" + name + "'; there are" + names);
}

/// A function that makes the work of a request. `what`: a network's mode or a layer's pass. `variant`: a layout or an
/// algorithm. `numbers`: a convolution. Throws Unsupported if this worker does not have the variant.
using Open = std::function<std::unique_ptr<Served>(const std::string& what, const std::string& variant,
                                                   const std::string& numbers)>;

/// Prints the greeting, then answers each line of standard input by a line of JSON:
///   open   WHAT VARIANT [NUMBERS]   makes the work and warms it up; answers its facts
///   pass   WHAT VARIANT [NUMBERS]   answers the seconds of one pass
///   facts  WHAT VARIANT [NUMBERS]   makes the work; answers its facts
///   result WHAT VARIANT [NUMBERS]   answers the results of one run
///   list   NET BATCH                answers the network's convolutions, in order
///   state                           answers the device's clock, temperature and power, and the cause of throttling
///   drop                            frees all memory
/// If a request cannot be done here, the answer has "error" and "refused". Returns at the end of the input. Throws
/// UsageError for any other line, and what Open throws except Unsupported.
void serve(const nlohmann::json& greeting, const Open&, Device* device = nullptr);

/// Runs `work`, the main part of a worker, and gives the exit status. If it throws, prints a last line with "error",
/// and with "refused" if the exception is Unsupported.
int answering(const std::function<void()>& work);

/// Adds a sample to an answer, as the fields `what` and `what`_cpu.
void put(nlohmann::json& answer, const std::string& what, const Sample&);

struct RacedConvolution {
  Shape x;
  Conv op;
};

/// Reads "16 64 56 56 128 3 3 1 1 1 1 1 1 1 0": n c h w, k r s, then stride, pad and dilation, each by rows and
/// columns, groups, bias. Throws UsageError for other text.
RacedConvolution read_convolution(const std::string&);

constexpr std::initializer_list<Pass> raced_passes = {Pass::forward, Pass::backward_params, Pass::backward_data};

/// The values of a tensor: "x", "w", "bias" or "dy". They depend only on this name, so all workers have the same
/// values: small whole numbers, whose sums are exact in f32.
std::vector<float> whole_numbers(std::int64_t count, const std::string& tensor);

/// A pass of a convolution, by Lamina or by oneDNN. Parameter gradients are overwritten.
class ServedConvolution : public Served {
 public:
  explicit ServedConvolution(Pass pass) : pass_(pass) {}
  void warm_up() final { run(); }
  nlohmann::json facts() const final { return {{"implementation", implementation()}}; }
  /// Times a pass. If the pass takes less than a tenth of a second, it runs repeatedly and the time is the mean.
  nlohmann::json pass() final;

 protected:
  virtual std::string implementation() const = 0;
  virtual Sample run() = 0;
  Pass pass_;
};

struct ServedTrainingOptions {
  std::string workload{};
  double share = 1;               ///< share of the synthetic set
  int epochs = 1;                 ///< number of epochs to write; a race needs one more than it has rounds
  std::filesystem::path files{};  ///< folder of the files
};

/// Writes files to the folder `files`, which must exist: initial.safetensors with the initial parameters of the
/// training, and epoch-0.safetensors, ... with "x" and "labels" of every sample. The samples are in the order of the
/// epoch, only in whole batches.
void write_batches(const ServedTrainingOptions&, Backend&);

/// A training whose passes are its epochs, on whole batches and without validation. An answer has "epoch" and
/// "epoch_cpu" in seconds, "loss" and "accuracy".
std::unique_ptr<Served> serve_training(const ServedTrainingOptions&, Backend&);

/// Writes to the folder `files`, which must exist:
///   weights.safetensors   parameters and running statistics of the network: `weights` or, if empty, random values
///   check.safetensors     "x", a batch of inputs, and "x1", ... for further inputs; "y", the output of an f32 plan in
///                         inference; for a network without dropout also "y_training", the output in training
///   network.onnx          graph and weights; only with `onnx`
/// Throws what write_onnx throws. Throws UsageError if y cannot show errors: if it is not finite, or if nearly all
/// probabilities are 0 or 1.
void write_network_files(const Graph&, const TensorFile& weights, Backend&, const std::filesystem::path& files,
                         bool onnx);

struct ServeOptions : PlanningSettings {
  std::string network{};             ///< network of the zoo; empty: an ONNX file, a training, or convolutions
  bool write_onnx = false;           ///< whether to write the network as ONNX, too
  ServedTrainingOptions training{};  ///< epochs of a workload; `files` is also the folder for a network's files
};

/// Runs the subcommand `serve`, and gives the exit status: serves passes of a network, epochs of a workload, or
/// convolutions. If a folder is given, it first writes the files there that peers need. After an error, prints a last
/// line as answering() does.
int run_serve(const ServeOptions&);

}  // namespace lamina::bench
