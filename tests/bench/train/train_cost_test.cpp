// Costs, targets and logs of trainings.

#include <cmath>
#include <limits>
#include <vector>

#include "bench/train/lines.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;

namespace {

const double none = std::numeric_limits<double>::quiet_NaN();

EpochResult epoch(std::uint64_t number, double seconds, double loss, double accuracy, double val_accuracy) {
  return {.epoch = number,
          .training = {loss, accuracy},
          .validation = {std::isnan(val_accuracy) ? none : loss + 1, val_accuracy},
          .seconds = seconds};
}

}  // namespace

TEST_CASE("a price of the hour makes dollars, with two digits that are not 0") {
  CHECK(cost_text(1800, 0.5) == ", 0.2500 USD at 0.5 USD/h");
  CHECK(cost_text(0.95, 0.12) == ", 0.000032 USD at 0.12 USD/h");
  CHECK(cost_text(1800, 0).empty());
}

TEST_CASE("a target is reached at the end of the first epoch that has it") {
  const std::vector<EpochResult> epochs = {epoch(0, 3, 1, .5, .7), epoch(1, 2, .8, .95, .9), epoch(2, 2, .7, .96, .85)};
  CHECK(seconds_to(epochs, .7) == 3);
  CHECK(seconds_to(epochs, .9) == 5);
  CHECK(seconds_to(epochs, .91) < 0);
  CHECK(seconds_to({epoch(0, 3, 1, .5, none), epoch(1, 2, 1, .6, none)}, .6) == 5);
}

TEST_CASE("a run's file has the columns of the posts' logs, and nothing for what was not validated") {
  CHECK(run_csv({epoch(0, 3.5, .25, .5, .75), epoch(1, 2, .125, .625, none)}) ==
        "epoch,elapsed,loss,acc,val_loss,val_acc\n0,3.5,0.25,0.5,1.25,0.75\n1,2,0.125,0.625,,\n");
}
