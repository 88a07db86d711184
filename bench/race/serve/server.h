#pragma once
// The child's side of every race between processes: its work, and the requests that it answers. lamina_bench serve is a
// worker of bench/race/race, which runs one pass at a time. For a convolution: its spelling, the numbers in its
// tensors, and the timing of a pass.

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

/// Requested work, ready for any number of runs.
class Served {
 public:
  virtual ~Served() = default;
  virtual void warm_up() = 0;
  virtual nlohmann::json facts() const = 0;  ///< facts about the work
  virtual nlohmann::json pass() = 0;  ///< runs a timed pass; gives seconds of the device's timer and of processor time
  /// The results of a run.
  virtual std::vector<float> result() { throw UsageError("numbers of networks are compared by tests/torch"); }
};

/// The value of this name. Throws UsageError for an unknown name.
template <class T>
T named(const char* what, const std::string& name, std::initializer_list<T> known) {
  std::string names;
  for (const T each : known) {
    if (name == to_string(each)) return each;
    names += " " + std::string(to_string(each));
  }
  throw UsageError("no " + std::string(what) + " '" + name + "'; there are" + names);
}

/// Makes the work that the words of a request name: a network's mode or a layer's pass, then the variant (a layout or
/// an algorithm), then a convolution's numbers. Throws Unsupported if this side does not have the variant.
using Open = std::function<std::unique_ptr<Served>(const std::string& what, const std::string& variant,
                                                   const std::string& numbers)>;

/// Writes the greeting and then one line of JSON for each line of standard input:
///   open   WHAT VARIANT [NUMBERS]   makes the work and warms it up; answers its facts
///   pass   WHAT VARIANT [NUMBERS]   answers the seconds of one pass
///   facts  WHAT VARIANT [NUMBERS]   makes the work; answers its facts
///   result WHAT VARIANT [NUMBERS]   answers the numbers that one run computes
///   list   NET BATCH                answers the network's convolutions, in order
///   state                           answers the device's clock, temperature and power, and what holds the clock down
///   drop                            gives back all memory
/// A request that cannot be done here is answered with "error" and "refused". Returns at the end of the input. Throws
/// UsageError for any other line, and what else Open throws.
void serve(const nlohmann::json& greeting, const Open&, Device* device = nullptr);

/// Does the work of a child. A failure is a last line with "error". It also has "refused" if the work cannot be done
/// here but is no fault. Gives the exit status.
int answering(const std::function<void()>& work);

/// Adds a sample to an answer.
void put(nlohmann::json& answer, const std::string& what, const Sample&);

struct RacedConvolution {
  Shape x;
  Conv op;
};

/// "16 64 56 56 128 3 3 1 1 1 1 1 1 1 0": n c h w, k r s, then stride, pad and dilation by rows and columns, groups,
/// bias. Throws UsageError for anything else.
RacedConvolution read_convolution(const std::string&);

constexpr std::initializer_list<Pass> raced_passes = {Pass::forward, Pass::backward_params, Pass::backward_data};

/// x, w, bias and dy of either side: small whole numbers, whose sums are exact in f32. They depend on the tensor's name
/// alone.
std::vector<float> whole_numbers(std::int64_t count, const std::string& tensor);

/// A pass of a convolution by either side. Parameter gradients are overwritten.
class ServedConvolution : public Served {
 public:
  explicit ServedConvolution(Pass pass) : pass_(pass) {}
  void warm_up() final { run(); }
  nlohmann::json facts() const final { return {{"implementation", implementation()}}; }
  /// Times a pass. The time of a pass that takes less than a tenth of a second is the mean over runs back to back.
  nlohmann::json pass() final;

 protected:
  virtual std::string implementation() const = 0;
  virtual Sample run() = 0;
  Pass pass_;
};

struct ServedTrainingOptions {
  std::string workload{};
  double share = 1;  ///< share of the synthetic set
  int epochs = 1;    ///< epochs in `files`; a race has one more than rounds
  std::filesystem::path files{};
};

/// Writes to the folder `files`, which exists: initial.safetensors, the parameters that the training starts with, and
/// epoch-0.safetensors, ...: "x" and "labels" of every sample in the order of the epoch, whole batches only.
void write_batches(const ServedTrainingOptions&, Backend&);

/// Each pass is the next epoch of one training, on whole batches and without validation: "epoch" and "epoch_cpu"
/// seconds, "loss", "accuracy".
std::unique_ptr<Served> serve_training(const ServedTrainingOptions&, Backend&);

/// Writes to the folder `files`, which exists:
///   weights.safetensors   the network's parameters and running statistics, given or drawn by its plans
///   check.safetensors     "x", a batch of numbers, "x1", ... for further inputs, and "y", the output of an f32 plan in
///                         inference; without dropout also "y_training", its output in training
///   network.onnx          graph and weights, if `onnx` asks for them
/// Throws what write_onnx throws, and UsageError if y shows nothing of the computation: if it is not finite, or has
/// hardly more than one probability other than 0 in each image.
void write_network_files(const Graph&, const TensorFile& weights, Backend&, const std::filesystem::path& files,
                         bool onnx);

struct ServeOptions : PlanningSettings {
  std::string network{};             ///< network of the zoo; empty: an ONNX file's, or convolutions
  bool write_onnx = false;           ///< whether the files have the network as ONNX, too
  ServedTrainingOptions training{};  ///< epochs of a workload; its `files` also serve a network
};

/// Serves passes of a network, epochs of a workload, or convolutions. With a folder for files it first writes there
/// what peers need. A failure is a last line with "error". That line also has "refused" if the work cannot be done here
/// but this is no fault. Returns the exit status.
int run_serve(const ServeOptions&);

}  // namespace lamina::bench
