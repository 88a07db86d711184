// Energy of the processor by RAPL, of a GPU by NVML, and of a window of work.

#include "lamina/energy.h"

#include <chrono>
#include <map>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "gpu.h"
#include "lamina/error.h"
#include "lib/device/cuda/nvml.h"
#include "lib/support/system_file.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;

/// The packages of the processor; the zones within them (cores, memory) are parts of them, or not counted everywhere.
class Rapl final : public EnergyCounter {
 public:
  explicit Rapl(const fs::path& root) {
    for (const auto& [name, folder] : packages(root)) {
      const std::optional<double> now = number_in(folder / "energy_uj");
      if (!now)
        throw Unsupported("energy: cannot read " + (folder / "energy_uj").string() +
                          "; only root may, on most systems");
      zones_.push_back({folder, name, *now, number_in(folder / "max_energy_range_uj").value_or(0)});
    }
    if (zones_.empty()) throw Unsupported("energy: no package of a processor in " + root.string());
  }

  std::string describe() const override {
    std::string text = "RAPL";
    for (const Zone& zone : zones_) text += (&zone == zones_.data() ? " " : ", ") + zone.name;
    return text;
  }

  double joules() override {
    for (Zone& zone : zones_) {
      const std::optional<double> now = number_in(zone.folder / "energy_uj");
      if (!now) throw DeviceError("energy: cannot read " + (zone.folder / "energy_uj").string() + " any more");
      const double step = *now - zone.last;
      microjoules_ += step < 0 ? step + zone.range : step;  // without a known range the sum goes back, which is refused
      zone.last = *now;
    }
    return 1e-6 * microjoules_;
  }

 private:
  /// The folder of each package by name. Laptops have a package twice, as "intel-rapl:0" and as "intel-rapl-mmio:0",
  /// with the same energy: the former counts.
  static std::map<std::string, fs::path> packages(const fs::path& root) {
    std::map<std::string, fs::path> found;
    std::error_code error;
    for (fs::directory_iterator each(root, error), end; !error && each != end; each.increment(error)) {
      const std::string name = first_line(each->path() / "name");
      if (!name.starts_with("package")) continue;
      const auto [place, is_new] = found.try_emplace(name, each->path());
      const bool was_mmio = place->second.filename().string().find("-mmio") != std::string::npos;
      if (!is_new && was_mmio) place->second = each->path();
    }
    return found;
  }

  struct Zone {
    fs::path folder;
    std::string name;
    double last, range;
  };
  std::vector<Zone> zones_;
  double microjoules_ = 0;
};

class NvmlEnergy final : public EnergyCounter {
 public:
  explicit NvmlEnergy(Nvml nvml) : nvml_(std::move(nvml)) { nvml_.joules(); }
  std::string describe() const override { return "NVML's total energy counter"; }
  double joules() override { return nvml_.joules(); }

 private:
  Nvml nvml_;
};

}  // namespace

std::unique_ptr<EnergyCounter> nvml_energy(const Nvml& nvml) { return std::make_unique<NvmlEnergy>(nvml); }

std::unique_ptr<EnergyCounter> processor_energy(const fs::path& root) { return std::make_unique<Rapl>(root); }

std::unique_ptr<EnergyCounter> gpu_energy(int number) {
  if (const std::string why = why_no_cuda(); !why.empty()) throw Unsupported("energy: " + why);
  return nvml_energy(Nvml(cuda_bus_id(number)));
}

EnergyUsed measure_energy(EnergyCounter& counter, const std::function<void()>& work, double least_seconds,
                          const std::function<double()>& now) {
  const auto clock = [&] {
    if (now) return now();
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  EnergyUsed used;
  const double before = counter.joules(), start = clock();
  while (used.seconds < least_seconds) {
    work();
    ++used.runs;
    used.seconds = clock() - start;
  }
  used.joules = counter.joules() - before;
  if (used.joules == 0) throw Unsupported("energy: the counter stood still (" + counter.describe() + ")");
  if (used.joules < 0) throw Unsupported("energy: the counter went back (" + counter.describe() + ")");
  return used;
}

}  // namespace lamina
