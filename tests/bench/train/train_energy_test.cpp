// Joules of a run and of its parts, and of a training's epochs: from a counter that the test moves.

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/machine/energy.h"
#include "bench/train/train.h"
#include "lamina/error.h"
#include "tests/io/files.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A device whose energy and clock stand until they are moved.
struct Moved {
  double joules = 0, seconds = 0;
  int readings = 0;
  bool broken = false;

  void on(double more_joules, double more_seconds) { joules += more_joules, seconds += more_seconds; }
};

class MovedCounter final : public EnergyCounter {
 public:
  explicit MovedCounter(Moved& moved) : moved_(&moved) {}
  std::string describe() const override { return "a moved counter"; }
  double joules() override {
    if (moved_->broken) throw DeviceError("energy: cannot read it any more");
    ++moved_->readings;
    return moved_->joules;
  }

 private:
  Moved* moved_;
};

MakeEnergyCounter counter_of(Moved& moved) {
  return [&moved](const std::string&) { return std::make_unique<MovedCounter>(moved); };
}

std::unique_ptr<EnergyCounter> no_counter(const std::string&) { throw Unsupported("energy: none here"); }

EnergyMeter meter_of(Moved& moved) {
  return {"eigen", counter_of(moved), [&moved] { return moved.seconds; }};
}

}  // namespace

TEST_CASE("energy: the parts of a run are counted one after another, and the run as a whole") {
  Moved moved{.joules = 500};
  EnergyMeter meter = meter_of(moved);
  moved.on(1000, 9);  // before it begins
  meter.begin();
  moved.on(30, 2);
  const MeasuredEnergy first = meter.end_part();
  CHECK(first.joules == Approx(30));
  CHECK(first.window_seconds == Approx(2));
  CHECK(first.missing.empty());
  moved.on(12, 1);
  CHECK(meter.end_part().joules == Approx(12));
  moved.on(8, 1);
  const MeasuredEnergy whole = meter.whole();
  CHECK(whole.joules == Approx(50));
  CHECK(whole.window_seconds == Approx(4));
  CHECK(meter.describe() == "a moved counter");
}

TEST_CASE(
    "energy: a part that is too short, or whose counter stands still or goes back, has the reason and no joules") {
  Moved moved;
  EnergyMeter meter = meter_of(moved);
  meter.begin();
  const auto reason = [&](double joules, double seconds) {
    moved.on(joules, seconds);
    const MeasuredEnergy part = meter.end_part();
    CHECK(part.joules == 0);
    return part.missing;
  };
  CHECK_THAT(reason(5, 0.9), ContainsSubstring("0.9 s"));
  CHECK_THAT(reason(0, 2), ContainsSubstring("stood still"));
  CHECK_THAT(reason(-1, 2), ContainsSubstring("went back"));
  moved.on(3, 1);
  CHECK(meter.end_part().joules == Approx(3));
}

TEST_CASE("energy: during a part the counter is read once a second at most") {
  Moved moved;
  EnergyMeter meter = meter_of(moved);
  meter.begin();
  const int before = moved.readings;
  for (int i = 0; i < 12; ++i) {
    moved.on(1, 0.25);
    meter.look();
  }
  CHECK(moved.readings == before + 3);
  CHECK(meter.end_part().joules == Approx(12));
}

TEST_CASE("energy: a counter that is not there, or breaks, is the reason from then on") {
  Moved moved;
  EnergyMeter none("eigen", no_counter);
  none.begin();
  none.look();
  CHECK_THAT(none.whole().missing, ContainsSubstring("none here"));
  CHECK(none.describe() == "not available: energy: none here");

  EnergyMeter meter = meter_of(moved);
  meter.begin();
  moved.on(7, 2);
  CHECK(meter.end_part().missing.empty());
  moved.on(7, 2);
  moved.broken = true;
  CHECK_THAT(meter.end_part().missing, ContainsSubstring("any more"));
  moved.broken = false;
  moved.on(7, 2);
  CHECK_THAT(meter.whole().missing, ContainsSubstring("any more"));
  CHECK(meter.whole().joules == 0);
}

TEST_CASE("energy: a training's epochs and its whole have joules, or the reason why there are none") {
  const test::Folder folder;
  TrainOptions options{.names = {"mnist_mlp"}, .epochs = 2, .share = 0.002};
  options.energy = true;
  options.json = folder / "run.json";
  Moved moved;
  std::string printed;
  const auto print = [&](const std::string& text) {
    printed += text;
    if (!text.starts_with("epoch 1/")) return;  // in the window of the second epoch
    moved.on(40, 1.25);
  };
  CHECK(train_all(options, make_backend, print, counter_of(moved), [&moved] { return moved.seconds; }) == 0);
  INFO(printed);
  auto file = nlohmann::json::parse(std::ifstream(options.json));
  const auto& rows = file["benchmarks"];
  REQUIRE(rows.size() == 2);
  CHECK(!rows[0].contains("joules"));
  CHECK_THAT(rows[0]["joules_missing"].get<std::string>(), ContainsSubstring("windows of 1 s"));
  CHECK(rows[1]["joules"] == 40);
  CHECK(rows[1]["joules_window_s"] == 1.25);
  CHECK(!rows[1].contains("joules_missing"));
  CHECK(file["trainings"][0]["joules"] == 40);
  CHECK(file["context"]["energy_eigen"] == "a moved counter");
  CHECK_THAT(file["context"]["idle_power_w_eigen"].get<std::string>(), ContainsSubstring("stood still"));
  CHECK_THAT(printed, ContainsSubstring("energy: a moved counter"));
  CHECK_THAT(printed, ContainsSubstring("  40 J"));
  CHECK_THAT(printed, ContainsSubstring("energy of this run: 40 J"));

  printed.clear();
  CHECK(train_all(
            options, make_backend, [&](const std::string& text) { printed += text; }, no_counter) == 0);
  file = nlohmann::json::parse(std::ifstream(options.json));
  for (const auto& row : file["benchmarks"]) {
    CHECK(!row.contains("joules"));
    CHECK(row["joules_missing"] == "energy: none here");
  }
  CHECK(file["trainings"][0]["joules_missing"] == "energy: none here");
  CHECK(file["context"]["energy_eigen"] == "not available: energy: none here");
  CHECK_THAT(printed, ContainsSubstring("joules not available: energy: none here"));

  options.energy = false;
  CHECK(train_all(
            options, make_backend, [](const std::string&) {}, no_counter) == 0);
  file = nlohmann::json::parse(std::ifstream(options.json));
  CHECK(!file["benchmarks"][0].contains("joules_missing"));
  CHECK(!file["context"].contains("energy_eigen"));
}
