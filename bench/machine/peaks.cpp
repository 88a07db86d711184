// The rates that backends and their devices reach here.

#include "peaks.h"

#include <algorithm>

#include <fmt/format.h>

#include "bench/io/interrupt.h"
#include "bench/timing/machine_watch.h"
#include "lamina/lamina.h"
#include "lamina/statistics.h"

namespace lamina::bench {
namespace {

constexpr int processor_moments = 15;  // measurements of a processor, which take about a tenth of a second together
constexpr int product_batch = 2, product_channels = 512, product_image = 56, product_tries = 9;
constexpr int gpu_rows = 8192, gpu_channels = 4096;  // 275 GFLOP: the time of a launch is negligible

double measured_product(Backend& backend, DType dtype, bool on_gpu) {
  Graph graph("product");
  if (on_gpu)
    fully_connected(graph.input({gpu_rows, gpu_channels, 1, 1}), "product", {.outputs = gpu_channels, .bias = false});
  else
    conv(graph.input({product_batch, product_channels, product_image, product_image}), "product",
         {.channels = product_channels, .kernel = 1, .bias = false});
  Plan plan(graph, backend, {.mode = Mode::inference, .dtype = dtype});
  Stopwatch stopwatch(backend.device());
  const auto seconds = [&] { return stopwatch.time([&] { plan.forward(); }).seconds; };
  const double cold = seconds();
  // An emulated device takes seconds, so the cold start and the noise are negligible, and one pass is enough.
  double best = cold;
  if (cold < 1) {
    best = seconds();
    for (int i = 1; i < product_tries && interrupted() == 0; ++i) best = std::min(best, seconds());
  }
  return 2.0 * static_cast<double>(graph.multiply_adds()) / best;
}

/// The answer of `measure`, or 0 if it throws an Error. The rows of this backend then fail, too, and have the error.
template <class Measure>
double rate_or_0(Measure&& measure) {
  try {
    return measure();
  } catch (const Error&) {
    return 0;
  }
}

DeviceInfo::Kind kind_of(const std::string& backend) {
  return runs_on_gpu(backend) ? DeviceInfo::Kind::gpu : DeviceInfo::Kind::processor;
}

/// The value of a key. A new key is measured first.
template <class Map, class Measure>
auto& measured_once(Map& known, const typename Map::key_type& key, Measure&& measure) {
  const auto found = known.find(key);
  return found != known.end() ? found->second : known.emplace(key, measure()).first->second;
}

}  // namespace

const Peak& Peaks::of(const std::string& backend, DType dtype) {
  return measured_once(peaks_, {backend, dtype}, [&] {
    std::vector<double> of_units;
    do of_units.push_back(rate_or_0([&] { return backends_->at(backend).peak_flops_per_second(dtype); }));
    while (of_units.back() > 0 && !runs_on_gpu(backend) && of_units.size() < processor_moments && interrupted() == 0);
    const double most = *std::max_element(of_units.begin(), of_units.end());
    if (most > 0)
      return Peak{median_interval(of_units).middle, most, true, "multiply-adds in registers, on every thread"};
    const double product = product_flops_per_second(backend, dtype);
    return Peak{product, product, false, product_description(backend)};
  });
}

Moment Peaks::now(const std::string& backend, DType dtype) {
  if (runs_on_gpu(backend) || !of(backend, dtype).in_registers || interrupted() != 0) return {};
  return {rate_or_0([&] { return backends_->at(backend).peak_flops_per_second(dtype); }), 1e-6 * core_clock()};
}

void set_moment(std::vector<Sample>& samples, const Moment& moment) {
  for (Sample& sample : samples) {
    sample.peak_flops_per_second = moment.flops_per_second;
    sample.clock_mhz = moment.clock_mhz;
  }
}

Moment PeakBeside::end() {
  const Moment after = peaks_->now(backend_, dtype_);
  const Moment mean =
      before_.flops_per_second > 0 && after.flops_per_second > 0
          ? Moment{(before_.flops_per_second + after.flops_per_second) / 2, (before_.clock_mhz + after.clock_mhz) / 2}
          : Moment{};
  before_ = after;
  return mean;
}

double Peaks::product_flops_per_second(const std::string& backend, DType dtype) {
  return measured_once(products_, {backend, dtype}, [&] {
    return rate_or_0([&] { return measured_product(backends_->at(backend), dtype, runs_on_gpu(backend)); });
  });
}

double Peaks::known_bytes_per_second(const std::string& backend) const {
  const auto found = memory_.find(kind_of(backend));
  return found == memory_.end() ? 0 : found->second;
}

double Peaks::bytes_per_second(const std::string& backend) {
  const DeviceInfo::Kind kind = kind_of(backend);
  const auto measured = [kind] {
    double best = 0;
    for (const DeviceInfo& device : devices()) {
      if (device.kind != kind || device.number != 0) continue;
      const DeviceRates rates = measure(device, [] { return interrupted() != 0; });
      best = std::max(rates.copy_bytes_per_second, rates.triad_bytes_per_second);
    }
    return best;
  };
  return measured_once(memory_, kind, [&] { return rate_or_0(measured); });
}

std::string Peaks::product_description(const std::string& backend) {
  if (runs_on_gpu(backend))
    return fmt::format("fastest of at most {} forward passes of a fully connected op, {} to {} channels, batch {}",
                       product_tries, gpu_channels, gpu_channels, gpu_rows);
  return fmt::format("fastest of at most {} forward passes of a 1x1 convolution, {} to {} channels, batch {}, {}x{}",
                     product_tries, product_channels, product_channels, product_batch, product_image, product_image);
}

}  // namespace lamina::bench
