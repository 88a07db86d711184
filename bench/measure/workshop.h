#pragma once
// What measurements share: backends by name, graphs, plans' options, and the rates that a backend reaches here.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lamina/devices.h"
#include "lamina/lamina.h"
#include "names.h"
#include "options/options.h"
#include "samples.h"

namespace lamina::bench {

/// How backends are made: make_backend, or what a test has in its place.
using MakeBackend = std::function<std::shared_ptr<Backend>(const std::string& name, const BackendOptions&)>;

/// The rate of the units, or what stands for it.
struct Peak {
  double flops = 0;           ///< operations per second; 0: could not be measured
  bool in_registers = false;  ///< the units' own, by multiply-adds in registers; else a large product's
  std::string description() const;
};

class Workshop {
 public:
  explicit Workshop(Settings settings, MakeBackend make = make_backend)
      : settings_(std::move(settings)), make_(std::move(make)) {}

  const Settings& settings() const { return settings_; }

  /// Those that the user named, or every one that was built and can run here, cuda-host apart. Throws UsageError for
  /// names that are none.
  const std::vector<std::string>& backend_names();
  /// Of backends that were left out, why: "cudnn: this build ...".
  const std::vector<std::string>& left_out() const { return left_out_; }

  /// Throws what make_backend throws.
  Backend& backend(const std::string& name);
  Backend& usable_backend(const std::string& name);  ///< throws Unsupported where it cannot run here, with the reason
  /// Time from nothing to a backend's device with its library and handle, which is opened now or was before: always the
  /// one time that it was. Throws what usable_backend() and device() throw.
  Sample opened(const std::string& name);
  /// Takes a backend in place of the one that the name stands for.
  void put(const std::string& name, std::shared_ptr<Backend>);
  int passes(const std::string& backend) const;  ///< as asked, or by the kind of device

  Graph graph(const Case&) const;  ///< with the softmax of its protocol
  /// With the choices of the file that the options name; how many of them hold is said on standard error, once for each
  /// network, backend and batch. Throws FileError, and UsageError where it has none for the
  /// network on this backend and device.
  Options plan_options(const Case&, Mode);

  /// What the backend's units reach by its own measurement or, where it has none, a large product; measured at the
  /// first call.
  const Peak& peak(const std::string& backend, DType);
  double peak_flops(const std::string& backend, DType dtype) { return peak(backend, dtype).flops; }
  const std::map<std::string, Peak>& peaks() const { return peaks_; }  ///< by "eigen/f32": those that were asked for
  /// Operations per second of the fastest of several forward passes of one large product, a 1x1 convolution; measured
  /// at the first call. 0 where it cannot be measured.
  double product_flops(const std::string& backend, DType);
  static std::string product_description();
  /// Bytes per second that the memory of the backend's device reaches, the better of its measured rates; measured at
  /// the first call. 0 where it cannot be measured, or was interrupted.
  double peak_bytes_per_second(const std::string& backend);

 private:
  struct Opening {
    Sample sum;
    bool asked = false, device = false;  ///< what is in the sum
  };

  std::string available(const std::string& name);
  std::map<std::string, Choice> saved_choices(const Case&);

  Settings settings_;
  MakeBackend make_;
  std::optional<ChoiceCache> choices_;  ///< of the file, once it was read
  std::set<std::string> told_;          ///< of the file, on standard error
  std::map<std::string, std::shared_ptr<Backend>> backends_;
  std::map<std::string, Opening> openings_;
  std::vector<std::string> names_, left_out_;
  std::map<std::string, Peak> peaks_;
  std::map<std::string, double> products_;
  std::map<DeviceInfo::Kind, double> memory_peaks_;
};

/// Operations and bytes of a pass over a whole graph, each pass of each op by itself: backward counts the data
/// gradients that are wanted.
struct GraphCost {
  Cost forward, backward;
};
GraphCost graph_cost(const Graph&, DType, bool input_gradient);

/// The sums over a plan's calls.
GraphCost plan_cost(const Plan&);

std::vector<Shape> input_shapes(const Graph&, const Node&);

/// Fills a tensor with standard normal numbers of the sequence of `key`, on the host, and uploads them: image by image,
/// so that they take no memory to speak of.
void draw(Device&, const Tensor&, std::uint64_t key);

}  // namespace lamina::bench
