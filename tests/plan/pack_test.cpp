// pack(): blocks that are alive at the same time never overlap.

#include "lamina/plan.h"
#include "tests/support/catch.h"
#include "tests/support/numbers/values.h"

using namespace lamina::test;

namespace {

bool alive_together(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

}  // namespace

TEST_CASE("pack of no blocks needs no bytes") { CHECK(pack({}).bytes == 0); }

TEST_CASE("pack refuses an alignment that is no power of two, and more bytes than fit into 64 bits") {
  CHECK_THROWS_AS(pack({{100, 0, 1}}, 0), UsageError);
  CHECK_THROWS_AS(pack({{100, 0, 1}}, 24), UsageError);
  CHECK_THROWS_AS(pack({{SIZE_MAX - 100, 0, 1}}), UsageError);
  CHECK_THROWS_AS(pack({{SIZE_MAX / 2, 0, 1}, {SIZE_MAX / 2, 0, 1}}), UsageError);
  CHECK(pack({{SIZE_MAX / 4, 0, 1}, {SIZE_MAX / 4, 0, 1}}).bytes > SIZE_MAX / 2);
}

TEST_CASE("pack places blocks that are alive at the same time side by side, the largest first") {
  const Packing packing = pack({{100, 0, 3}, {1000, 1, 2}}, 256);
  CHECK(packing.offsets == std::vector<std::size_t>{1024, 0});
  CHECK(packing.bytes == 1280);
}

TEST_CASE("pack gives one place to blocks whose lifetimes do not overlap") {
  CHECK(pack({{512, 0, 1}, {512, 2, 3}, {512, 4, 9}}).bytes == 512);
}

TEST_CASE("pack keeps blocks apart that share only one step") { CHECK(pack({{512, 0, 2}, {512, 2, 3}}).bytes == 1024); }

TEST_CASE("pack places a block in the gap that an ended block leaves") {
  // The third block uses the place of the first, which has ended.
  const Packing packing = pack({{2048, 0, 1}, {1024, 0, 9}, {2048, 2, 9}});
  CHECK(packing.bytes == 3072);
}

TEST_CASE("pack aligns every offset") {
  const Packing packing = pack({{1, 0, 9}, {3, 0, 9}, {700, 0, 9}}, 64);
  for (const std::size_t offset : packing.offsets) CHECK(offset % 64 == 0);
  CHECK(packing.bytes == 704 + 64 + 64);
}

TEST_CASE("pack never overlaps blocks that are alive together, and needs at most their sum", "[random]") {
  Dice dice(seed());
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> blocks(static_cast<std::size_t>(dice(1, 40)));
    std::size_t sum = 0, most_at_once = 0;
    for (Lifetime& block : blocks) {
      const int first = dice(0, 30);
      block = {static_cast<std::size_t>(dice(1, 5000)), first, first + dice(0, 10)};
      sum += (block.bytes + 255) / 256 * 256;
    }
    for (int step = 0; step <= 40; ++step) {
      std::size_t now = 0;
      for (const Lifetime& block : blocks)
        if (block.first <= step && step <= block.last) now += (block.bytes + 255) / 256 * 256;
      most_at_once = std::max(most_at_once, now);
    }
    const Packing packing = pack(blocks);
    INFO("seed " << seed() << ", round " << round);
    REQUIRE(packing.bytes <= sum);
    REQUIRE(packing.bytes >= most_at_once);
    for (std::size_t a = 0; a < blocks.size(); ++a) {
      REQUIRE(packing.offsets[a] + blocks[a].bytes <= packing.bytes);
      for (std::size_t b = 0; b < a; ++b) {
        if (!alive_together(blocks[a], blocks[b])) continue;
        const bool apart = packing.offsets[a] + blocks[a].bytes <= packing.offsets[b] ||
                           packing.offsets[b] + blocks[b].bytes <= packing.offsets[a];
        REQUIRE(apart);
      }
    }
  }
}
