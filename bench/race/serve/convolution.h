#pragma once
// Single convolutions in a race: how one is spelled, what is in its tensors, how a pass of it is timed.

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lamina/backend.h"
#include "lamina/plan.h"
#include "server.h"

namespace lamina::bench {

struct RacedConvolution {
  Shape x;
  Conv op;
};

/// "16 64 56 56 128 3 3 1 1 1 1 1 1 1 0": n c h w, k r s, then stride, pad and dilation by rows and columns, groups,
/// bias. Throws UsageError for anything else.
RacedConvolution read_convolution(const std::string&);

constexpr std::initializer_list<Pass> raced_passes = {Pass::forward, Pass::backward_params, Pass::backward_data};

/// A network's convolutions: names, numbers, and whether the data gradient is wanted. Throws UsageError.
nlohmann::json convolutions_of(const std::string& net, int batch);

/// x, w, bias and dy of either side: small whole numbers, whose sums are exact in f32. They depend on the tensor's name
/// alone.
std::vector<float> whole_numbers(std::int64_t count, const std::string& tensor);

/// One pass of a convolution by either side. Parameter gradients are overwritten.
class ServedConvolution : public Served {
 public:
  explicit ServedConvolution(Pass pass) : pass_(pass) {}
  void warm_up() final { run(); }
  nlohmann::json facts() const final { return {{"implementation", implementation()}}; }
  /// Times a pass. One that takes less than a tenth of a second is the mean over runs back to back.
  nlohmann::json pass() final;

 protected:
  virtual std::string implementation() const = 0;
  virtual Sample run() = 0;
  Pass pass_;
};

/// As a plan of one node in training mode. The variants are the layouts.
std::unique_ptr<Served> serve_convolution(Backend&, const RacedConvolution&, Pass, const Options&);

}  // namespace lamina::bench
