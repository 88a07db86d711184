#pragma once
// The child's side of every race between processes: what it runs, and the requests that it answers. lamina_bench serve:
// a worker of bench/race/race, which runs one pass at a time. A convolution: how it is spelled, what is in its tensors,
// how a pass of it is timed.

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
#include "lamina/backend.h"
#include "lamina/error.h"
#include "lamina/graph.h"
#include "lamina/plan.h"
#include "lamina/weights.h"

namespace lamina::bench {

/// Work that a child was asked for, ready to be run again and again.
class Served {
 public:
  virtual ~Served() = default;
  virtual void warm_up() = 0;
  virtual nlohmann::json facts() const = 0;  ///< what is known of it
  virtual nlohmann::json pass() = 0;         ///< one timed pass: seconds by the device's timer and of processor time
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

/// Makes what the words of a request name: a network's mode or a layer's pass, then what a side has of it (a layout, an
/// algorithm), then a convolution's numbers. Throws Unsupported where the side has none such.
using Open = std::function<std::unique_ptr<Served>(const std::string& what, const std::string& variant,
                                                   const std::string& numbers)>;

/// Writes the greeting and then one line of JSON for each line of standard input:
///   open   WHAT VARIANT [NUMBERS]   makes it and warms it up; answers what is known of it
///   pass   WHAT VARIANT [NUMBERS]   answers the seconds of one pass
///   facts  WHAT VARIANT [NUMBERS]   makes it; answers what is known of it
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
  double share = 1;  ///< of the synthetic set
  int epochs = 1;    ///< that `files` gets; a race has one more than rounds
  std::filesystem::path files{};
};

/// Writes to the folder `files`, which exists: initial.safetensors, the parameters that the training starts with, and
/// epoch-0.safetensors, ...: "x" and "labels" of every sample in the order of the epoch, whole batches only.
void write_batches(const ServedTrainingOptions&, Backend&);

/// Each pass is the next epoch of one training, on whole batches and without validation: "epoch" and "epoch_cpu"
/// seconds, "loss", "accuracy".
std::unique_ptr<Served> serve_training(const ServedTrainingOptions&, Backend&);

/// Writes to the folder `files`, which exists:
///   weights.safetensors   the network's parameters and running statistics, those given or as its plans draw them
///   check.safetensors     "x", a batch of numbers, of further inputs "x1", ..., and what an f32 plan makes of them in
///                         inference, "y"; of a network without dropout also what it makes in training, "y_training"
///   network.onnx          graph and weights, where `onnx` asks for it
/// Throws what write_onnx throws, and UsageError where y says nothing of what was computed: where it is not finite, or
/// has hardly more than one probability other than 0 in each image.
void write_network_files(const Graph&, const TensorFile& weights, Backend&, const std::filesystem::path& files,
                         bool onnx);

struct ServeOptions : PlanningSettings {
  std::string network{};             ///< of the zoo; empty: an ONNX file's, or convolutions
  bool write_onnx = false;           ///< the files have the network as ONNX, too
  ServedTrainingOptions training{};  ///< epochs of a workload; its `files` are also those of a network
};

/// Serves as server.h says: passes of a network, epochs of a workload, or convolutions. With a folder for
/// files it first writes there what peers need. A failure is a last line with "error". It also
/// has "refused" if the work cannot be done here but is no fault. Returns the exit status.
int run_serve(const ServeOptions&);

}  // namespace lamina::bench
