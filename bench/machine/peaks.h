#pragma once
// The rates that backends and their devices reach here. A rate is measured when it is first asked for.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backends.h"
#include "bench/timing/stopwatch.h"
#include "lamina/devices.h"

namespace lamina::bench {

/// The measured rate of the arithmetic units or, if that is not available, of a large matrix product.
struct Peak {
  double flops_per_second = 0;  ///< rate; for a processor, the median of several; 0: it could not be measured
  double most = 0;              ///< greatest of these rates
  bool in_registers = false;    ///< whether multiply-adds in registers were measured, not a large product
  std::string description;
};

/// The peak rate of a processor at one moment. The clock changes within seconds, and the peak changes with it, so a
/// peak of another moment does not apply.
struct Moment {
  double flops_per_second = 0;  ///< rate of the units; 0: not measured
  double clock_mhz = 0;         ///< clock of a core
};

class Peaks {
 public:
  explicit Peaks(Backends& backends) : backends_(&backends) {}

  /// The rate of the arithmetic units as the backend measures it or, if the backend does not, of a large product.
  const Peak& of(const std::string& backend, DType);
  using Key = std::pair<std::string, DType>;                                 ///< name of the backend, element type
  const std::map<Key, Peak>& known() const { return peaks_; }                ///< peaks that are measured already
  const std::map<Key, double>& known_products() const { return products_; }  ///< measured rates of products
  /// Measures the rate of this moment, which takes some milliseconds. Gives zeros for a backend that does not measure
  /// its units, and for a GPU: its rows have its clock.
  Moment now(const std::string& backend, DType);
  /// The flop/s of a large product: the fastest of several forward passes of one layer. 0: it cannot be measured.
  /// product_description() says which layer.
  double product_flops_per_second(const std::string& backend, DType);
  static std::string product_description(const std::string& backend);
  /// The bytes per second that the memory of the backend's device reaches: the greater rate of copy and triad. 0: it
  /// cannot be measured, or the measurement was interrupted.
  double bytes_per_second(const std::string& backend);
  double known_bytes_per_second(const std::string& backend) const;  ///< measures nothing; 0: not known yet

 private:
  Backends* backends_;
  std::map<Key, Peak> peaks_;
  std::map<Key, double> products_;
  std::map<DeviceInfo::Kind, double> memory_;
};

/// Sets the peak and the clock in the samples of a pass.
void set_moment(std::vector<Sample>&, const Moment&);

/// The peak beside timed passes, measured before the first pass and after each pass.
class PeakBeside {
 public:
  PeakBeside(Peaks& peaks, std::string backend, DType dtype)
      : peaks_(&peaks), backend_(std::move(backend)), dtype_(dtype) {}

  void begin() { before_ = peaks_->now(backend_, dtype_); }
  /// Call it after a pass. Gives the mean of the peaks before and after the pass. The next pass may then begin.
  Moment end();

 private:
  Peaks* peaks_;
  std::string backend_;
  DType dtype_;
  Moment before_{};
};

}  // namespace lamina::bench
