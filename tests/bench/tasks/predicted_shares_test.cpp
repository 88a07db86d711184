// Predicted shares of the peak, of rates that are made up: numbers by hand.

#include "bench/tasks/predicted_shares.h"

#include <sstream>
#include <string>
#include <vector>

#include "lamina/error.h"
#include "tests/bench/ended.h"
#include "tests/support/catch.h"
#include "tests/support/csv.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;

namespace {

ProductRates product_rates(int tile_rows) {
  ProductRates made;
  made.instruction_set = "made up";
  made.tile_rows = tile_rows;
  made.peak = 100e9;
  made.packed = 80e9;
  made.bytes_per_second = 10e9;
  return made;
}

KernelRate rate(const char* set, KernelTile tile, const char* place, double plain, double prefetched, double peak) {
  return {set, tile, place, 0, plain, prefetched, peak};
}

std::vector<test::CsvRow> share_rows(const std::string& csv) {
  std::istringstream stream(csv);
  return test::read_csv(stream, "csv");
}

}  // namespace

TEST_CASE("a pass is predicted from its arithmetic with edges, and from what it moves and packs") {
  const Conv op{.channels = 64, .kernel = 1, .bias = false};
  const Shape x{2, 32, 10, 10}, y{2, 64, 10, 10};
  constexpr double flops = 2.0 * 200 * 32 * 64, tensors = 4.0 * (200 * 32 + 200 * 64 + 32 * 64);
  const PredictedPass forward = predict(op, x, y, Pass::forward, product_rates(6));
  CHECK(forward.flops == flops);
  CHECK(forward.multiply == Approx(flops * 66 / 64 / 80e9));  // ten tiles of six rows, and one for the last four
  CHECK(forward.move == Approx((tensors + 4 * 200 * 32) / 10e9));
  CHECK(forward.share(100e9) == Approx(flops / 100e9 / (forward.multiply + forward.move)));
  const PredictedPass dx = predict(op, x, y, Pass::backward_data, product_rates(6));
  CHECK(dx.multiply == Approx(flops * 33 / 32 / 80e9));  // half a tile for the last two
  CHECK(dx.move == Approx((tensors + 4 * 200 * 64) / 10e9));
  const PredictedPass dw = predict(op, x, y, Pass::backward_params, product_rates(8));
  CHECK(dw.multiply == Approx(flops / 80e9));
  CHECK(dw.move == Approx((tensors + 4 * 200 * 32) / 10e9));  // the side with fewer channels is transposed
}

TEST_CASE("a pass with a stride is predicted with a column packed for each tap") {
  const Conv op{.channels = 12, .kernel = 3, .stride = 2, .pad = 1, .groups = 2, .bias = false};
  const Shape x{1, 4, 8, 8}, y{1, 12, 4, 4};
  constexpr double tensors = 4.0 * (4 * 64 + 12 * 16 + 12 * 2 * 9);
  const auto moved = [&](Pass pass) { return predict(op, x, y, pass, product_rates(6)).move * 10e9 - tensors; };
  CHECK(moved(Pass::forward) == Approx(4.0 * 4 * 9 * 16));
  CHECK(moved(Pass::backward_data) == Approx(4.0 * 12 * 9 * 16));
  CHECK(moved(Pass::backward_params) == Approx(4.0 * (4 * 9 + 12) * 16));
  const PredictedPass forward = predict(op, x, y, Pass::forward, product_rates(8));
  CHECK(forward.multiply == Approx(forward.flops * 8 / 6 / 80e9));  // six filters of a group
}

TEST_CASE("what is read in place is predicted by the rate of its planes, and packs nothing") {
  ProductRates in_place = product_rates(8);
  in_place.small_planes = 90e9;
  in_place.large_planes = 50e9;
  const Conv op{.channels = 64, .kernel = 1, .bias = false};
  const auto predicted = [&](int side, Pass pass) {
    return predict(op, {2, 32, side, side}, {2, 64, side, side}, pass, in_place);
  };
  const PredictedPass small = predicted(14, Pass::forward), large = predicted(28, Pass::backward_data);
  CHECK(small.multiply == Approx(small.flops / 90e9));
  CHECK(small.move == Approx(4.0 * (2 * 196 * 96 + 32 * 64) / 10e9));
  CHECK(large.multiply == Approx(large.flops / 50e9));
  CHECK(large.move == Approx(4.0 * (2 * 784 * 96 + 32 * 64) / 10e9));
  const PredictedPass dw = predicted(14, Pass::backward_params);
  CHECK(dw.multiply == Approx(dw.flops / 80e9));
  const Conv strided{.channels = 64, .kernel = 1, .stride = 2, .bias = false};
  const PredictedPass packs = predict(strided, {2, 32, 14, 14}, {2, 64, 7, 7}, Pass::forward, in_place);
  CHECK(packs.multiply == Approx(packs.flops / 80e9));
}

TEST_CASE("a prediction takes the convolutions' tile of the widest set, as shares of the peak beside it") {
  const KernelTile tall{6, 2, 8}, plain{4, 3, 8}, lines{8, 3, 16};
  std::vector<KernelRate> all = {rate("wide", {}, "registers", 100e9, 0, 100e9),
                                 rate("wide", tall, "packed, block", 45e9, 80e9, 90e9),
                                 rate("wide", plain, "packed, block", 81e9, 80e9, 90e9),
                                 rate("wide", tall, "planes of 14x14, L2", 40e9, 50e9, 80e9)};
  CHECK_FALSE(product_rates(all, 7e9));
  CHECK_FALSE(product_rates({}, 7e9));
  all.push_back(rate("narrow", tall, "planes of 56x56, L3", 40e9, 50e9, 80e9));
  CHECK_FALSE(product_rates(all, 7e9));
  all.push_back(rate("wide", tall, "planes of 56x56, L3", 40e9, 20e9, 80e9));
  const auto found = product_rates(all, 7e9);
  REQUIRE(found);
  CHECK(found->instruction_set == "wide");
  CHECK(found->tile_rows == 6);
  CHECK(found->peak == 100e9);
  CHECK(found->packed == Approx(50e9));
  CHECK(found->small_planes == 0);  // vectors of 32 bytes read nothing in place
  CHECK(found->bytes_per_second == 7e9);
  for (KernelRate& one : all)
    if (one.tile.rows > 0) one.tile = lines;
  CHECK(product_rates(all, 7e9)->small_planes == Approx(62.5e9));
  CHECK(product_rates(all, 7e9)->large_planes == Approx(50e9));
}

TEST_CASE("a prediction lists each 1x1 or strided convolution of the networks once, and counts it") {
  const std::vector<test::CsvRow> rows =
      share_rows(predicted_shares({"resnet18", "resnet34"}, product_rates(6), Format::csv));
  REQUIRE(rows.size() == 7);
  for (const test::CsvRow& row : rows) {
    CHECK(row.at("layer").starts_with("resnet18/"));
    CHECK(row.at("layers") == "2");
    CHECK((row.at("op").find("stride 2x2") != std::string::npos));
    CHECK(row.at("dx ms").empty() == (row.at("layer") == "resnet18/conv1"));
  }
  const std::string text = predicted_shares({"resnet50"}, product_rates(6), Format::text);
  CHECK_THAT(text, ContainsSubstring("with made up, batch 16, f32: 100.0 GFLOP/s in registers, 80.0 % of them") &&
                       ContainsSubstring("10.0 GB/s of memory"));
  CHECK_THAT(predicted_shares({"alexnet"}, product_rates(6), Format::text), ContainsSubstring("dx none"));
  CHECK(predicted_shares({"vgg16"}, product_rates(6), Format::text) == "No 1x1 or strided convolutions.\n");
  CHECK_THROWS_AS(predicted_shares({"resnet17"}, product_rates(6), Format::text), UsageError);
}

TEST_CASE("networks are predicted with the rates of the inner loop only, and known before these are measured") {
  using test::Ended;
  const Ended alone = test::run_bench("devices --predict=resnet18");
  CHECK(alone.status == 2);
  CHECK_THAT(alone.said, ContainsSubstring("--kernels"));
  const Ended unknown = test::run_bench("devices --kernels --predict=resnet17");
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.said, ContainsSubstring("resnet17") && ContainsSubstring("resnet18"));
  const Ended twice = test::run_bench("devices --kernels --predict=resnet18,resnet50,resnet18");
  CHECK(twice.status == 2);
  CHECK_THAT(twice.said, ContainsSubstring("--predict names resnet18 twice; once is enough"));
}
