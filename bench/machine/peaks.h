#pragma once
// The rates that backends and their devices reach here, measured when they are first asked for.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backends.h"
#include "bench/timing/stopwatch.h"
#include "lamina/devices.h"

namespace lamina::bench {

/// The measured rate of the units, or of a large product instead.
struct Peak {
  double flops_per_second = 0;  ///< rate; a processor's is the median of several; 0: it could not be measured
  double most = 0;              ///< greatest of these rates
  bool in_registers = false;    ///< whether multiply-adds in registers were measured, not a large product
  std::string description;
};

/// The rate that a processor's clock allows at this moment. The clock changes within seconds, so a peak of another
/// moment does not apply.
struct Moment {
  double flops_per_second = 0;  ///< rate of the units; 0: not measured
  double clock_mhz = 0;         ///< clock of a core
};

class Peaks {
 public:
  explicit Peaks(Backends& backends) : backends_(&backends) {}

  /// The rate of the backend's units by its own measurement or, where it has none, by a large product.
  const Peak& of(const std::string& backend, DType);
  using Key = std::pair<std::string, DType>;                                 ///< backend and type
  const std::map<Key, Peak>& known() const { return peaks_; }                ///< peaks that were asked for
  const std::map<Key, double>& known_products() const { return products_; }  ///< products' rates that were asked for
  /// Measures the rate of this moment, in some milliseconds. Zeros for a GPU, whose rows have its clock, and for a
  /// backend without a rate of units.
  Moment now(const std::string& backend, DType);
  /// Operations per second of the fastest of several forward passes of one large product. 0 where it cannot be
  /// measured.
  double product_flops_per_second(const std::string& backend, DType);
  static std::string product_description(const std::string& backend);
  /// Bytes per second that the memory of the backend's device reaches, the better of its measured rates. 0 where it
  /// cannot be measured, or was interrupted.
  double bytes_per_second(const std::string& backend);
  double known_bytes_per_second(const std::string& backend) const;  ///< measures nothing; 0: not known yet

 private:
  Backends* backends_;
  std::map<Key, Peak> peaks_;
  std::map<Key, double> products_;
  std::map<DeviceInfo::Kind, double> memory_;
};

/// Notes the moment in the samples of a pass.
void set_moment(std::vector<Sample>&, const Moment&);

/// The peak beside timed passes: measured before the first and after each one.
class PeakBeside {
 public:
  PeakBeside(Peaks& peaks, std::string backend, DType dtype)
      : peaks_(&peaks), backend_(std::move(backend)), dtype_(dtype) {}

  void begin() { before_ = peaks_->now(backend_, dtype_); }
  /// The mean of the peaks before and after the pass that has ended. The next pass begins here.
  Moment end();

 private:
  Peaks* peaks_;
  std::string backend_;
  DType dtype_;
  Moment before_{};
};

}  // namespace lamina::bench
