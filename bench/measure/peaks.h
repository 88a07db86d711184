#pragma once
// The rates that backends and their devices reach here, measured when they are first asked for.

#include <map>
#include <string>

#include "backends.h"
#include "lamina/devices.h"

namespace lamina::bench {

/// The rate of the units, or what is measured in its place.
struct Peak {
  double flops = 0;           ///< operations per second; 0: could not be measured
  bool in_registers = false;  ///< the units' own, by multiply-adds in registers; else a large product's
  std::string description() const;
};

class Peaks {
 public:
  explicit Peaks(Backends& backends) : backends_(&backends) {}

  /// What the backend's units reach by its own measurement or, where it has none, a large product.
  const Peak& of(const std::string& backend, DType);
  const std::map<std::string, Peak>& known() const { return peaks_; }  ///< by "eigen/f32": those that were asked for
  const std::map<std::string, double>& known_products() const { return products_; }  ///< likewise, of the products
  /// Operations per second of the fastest of several forward passes of one large product, a 1x1 convolution. 0 where it
  /// cannot be measured.
  double product_flops(const std::string& backend, DType);
  static std::string product_description();
  /// Bytes per second that the memory of the backend's device reaches, the better of its measured rates. 0 where it
  /// cannot be measured, or was interrupted.
  double bytes_per_second(const std::string& backend);
  double known_bytes_per_second(const std::string& backend) const;  ///< measures nothing; 0: not known yet

 private:
  Backends* backends_;
  std::map<std::string, Peak> peaks_;
  std::map<std::string, double> products_;
  std::map<DeviceInfo::Kind, double> memory_;
};

}  // namespace lamina::bench
