// The devices of this machine.

#include "context.h"

#include <fmt/format.h>

#include "lamina/error.h"

namespace lamina::bench {
namespace {

/// The value in units of `unit`, as text. Empty if the value is 0: it is not known.
std::string amount(double value, double unit, int digits) {
  return value > 0 ? fmt::format("{:.{}f}", value / unit, digits) : std::string();
}

constexpr double tera = 1e12, giga = 1e9;

std::string title(const DeviceInfo& device) {
  return device.kind == DeviceInfo::Kind::gpu ? fmt::format("gpu {}", device.number) : "processor";
}

/// The rates of a device. Adds lines below the table to `notes`: how they were measured, or why they were not.
MeasuredDevice measured(const DeviceInfo& device, Backends& backends, Peaks& peaks, std::string& notes) {
  MeasuredDevice result{device};
  DeviceRates& rates = result.rates;
  try {
    rates = measure(device);
    if (device.kind == DeviceInfo::Kind::processor) {
      if (const Peak& peak = peaks.of("eigen", DType::f32); peak.in_registers) {
        rates.units_flops_per_second = peak.flops_per_second;
        result.units_most = peak.most;
        notes += fmt::format("Units of {}: {}, {}\n", title(device), backends.at("eigen").describe(), peak.description);
      }
      rates.matrix_flops_per_second = peaks.product_flops_per_second("eigen", DType::f32);
      rates.matrix_by = fmt::format("backend eigen, {}", Peaks::product_description("eigen"));
    }
    if (!rates.matrix_by.empty()) notes += fmt::format("Matrix rate of {}: {}\n", title(device), rates.matrix_by);
  } catch (const Error& error) {
    notes += fmt::format("Not measured, {}: {}\n", title(device), error.what());
  }
  return result;
}

}  // namespace

TextTable device_columns(const std::vector<MeasuredDevice>& all) {
  TextTable table;
  table.columns = {"device",         "name",           "architecture",       ">GiB",
                   ">SMs",           ">cores",         ">peak fp32 TFLOP/s", ">tf32",
                   ">fp16",          ">peak GB/s",     ">copy GB/s",         ">triad GB/s",
                   ">units TFLOP/s", ">units at most", ">matrix TFLOP/s",    ">tf32 matrix TFLOP/s"};
  for (const auto& [device, rates, units_most] : all)
    table.rows.push_back(
        {title(device), device.name, device.architecture,
         amount(static_cast<double>(device.memory_bytes), 1024 * mebibyte, 1), amount(device.multiprocessors, 1, 0),
         amount(device.cores, 1, 0), amount(device.peak_fp32, tera, 1), amount(device.peak_tf32, tera, 1),
         amount(device.peak_fp16, tera, 1), amount(device.peak_bytes_per_second, giga, 0),
         amount(rates.copy_bytes_per_second, giga, 1), amount(rates.triad_bytes_per_second, giga, 1),
         amount(rates.units_flops_per_second, tera, 3), amount(units_most, tera, 3),
         amount(rates.matrix_flops_per_second, tera, 3), amount(rates.tf32_matrix_flops_per_second, tera, 3)});
  return table;
}

std::string device_table(Backends& backends, Peaks& peaks, Format format) {
  std::string notes;
  std::vector<MeasuredDevice> all;
  for (const DeviceInfo& device : devices()) all.push_back(measured(device, backends, peaks, notes));
  const TextTable table = device_columns(all);
  if (format == Format::csv) return table.csv();
  if (const std::string why = why_no_gpu(); !why.empty()) notes += fmt::format("GPU: {}\n", why);
  for (const LibraryVersion& library : device_libraries(true))
    notes += fmt::format("{}: {}\n", library.name, library.version);
  return table.text() +
         "\nPeaks are arithmetic on clocks, units and bus, for dense operands; the rates are measured.\n" + notes;
}

std::pair<std::string, std::string> gpu_fact(const DeviceInfo& device) {
  std::string text = fmt::format("{}, {}, {}, {} SMs", device.name, device.architecture,
                                 bytes_text(static_cast<double>(device.memory_bytes)), device.multiprocessors);
  if (device.cores > 0) text += fmt::format(", {} CUDA cores", device.cores);
  const auto add = [&](const char* what, double peak, double unit, const char* unit_name) {
    if (peak > 0) text += fmt::format(", {} {:.1f} {}", what, peak / unit, unit_name);
  };
  add("peak fp32", device.peak_fp32, tera, "TFLOP/s");
  add("tf32", device.peak_tf32, tera, "TFLOP/s");
  add("fp16", device.peak_fp16, tera, "TFLOP/s");
  add("memory", device.peak_bytes_per_second, giga, "GB/s");
  return {fmt::format("gpu_{}", device.number), text};
}

Json device_facts() {
  Json facts;
  for (const DeviceInfo& device : devices()) {
    const auto [name, text] = device.kind == DeviceInfo::Kind::gpu
                                  ? gpu_fact(device)
                                  : std::pair("processor_cores", fmt::format("{}", device.cores));
    facts[name] = text;
  }
  if (const std::string why = why_no_gpu(); !why.empty()) facts["gpu"] = why;
  for (const LibraryVersion& library : device_libraries(false))
    facts[library.name == "driver" ? "nvidia_driver" : "cuda_runtime"] = library.version;
  return facts;
}

}  // namespace lamina::bench
