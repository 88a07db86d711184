// Communicators by name, the communicator of a single rank, and each rank's part of a batch.

#include "lamina/communicator.h"
#include "lib/core/device/host/host_device.h"
#include "lib/core/text/difference.h"
#include "tests/support/catch.h"
#include "tests/support/environment.h"
#include "tests/train/networks.h"

using namespace lamina::test;

TEST_CASE("with one rank, sums and broadcasts return the rank's own data") {
  const auto self = make_communicator("self");
  CHECK(self->name() == "self");
  CHECK(self->rank() == 0);
  CHECK(self->size() == 1);
  CHECK(self->threads() >= 1);
  HostDevice device(1);
  float number = 3;
  self->start_all_reduce(device, &number, 1, DType::f32);
  self->finish(device);
  CHECK(number == 3);
  CHECK_THROWS_AS(self->start_all_reduce(device, &number, 1, DType::bf16), UsageError);
  CHECK(broadcast_text(*self, "text") == "text");
  CHECK_NOTHROW(check_same(*self, "seed 1"));
  self->barrier();
  self->abort();  // does nothing, because there is no other rank
}

TEST_CASE("a process that a launcher started alone does not count as launched by MPI") {
  const Variable other("OMPI_COMM_WORLD_SIZE", nullptr), rank("PMIX_RANK", "0"), size("PMI_SIZE", "1");
  CHECK_FALSE(launched_by_mpi());
  const Variable two("PMI_SIZE", "2");
  CHECK(launched_by_mpi());
}

TEST_CASE("an unknown communicator is an error that names a known one, and a limit must be a time") {
  CHECK_THROWS_WITH(make_communicator("mpj"), ContainsSubstring("did you mean \"mpi\""));
  CHECK_THROWS_AS(make_communicator("self", {.limit_seconds = 0}), UsageError);
  CHECK_THROWS_AS(make_communicator("self", {.limit_seconds = NAN}), UsageError);
}

TEST_CASE("difference() names the parts that differ, and the parts that one text lacks") {
  CHECK(difference("it has", "a 1, b 2, c 3", "this run", "a 1, b 3, c 4") == "it has b 2, c 3, and this run b 3, c 4");
  CHECK(difference("it has", "a 1", "this run", "a 1, b 2") == "it has nothing else, and this run b 2");
}

TEST_CASE("loaders of several ranks give each batch's rows in order, and a short batch goes to the first ranks") {
  const auto source = digits(43, 1);
  Loader whole(*source, {.batch = 12, .seed = 3, .threads = 0});
  std::vector<std::unique_ptr<Loader>> parts;
  for (int rank = 0; rank < 4; ++rank) {
    parts.push_back(std::make_unique<Loader>(
        *source, LoaderOptions{.batch = 12, .seed = 3, .threads = rank % 2, .rank = rank, .ranks = 4}));
    CHECK(parts.back()->batches() == 4);
    CHECK(parts.back()->samples() == 43);
    parts.back()->start(5);
  }
  whole.start(5);
  while (const Batch* batch = whole.next()) {
    std::vector<float> x, labels;
    std::vector<int> rows;
    for (const auto& part : parts) {
      const Batch* its = part->next();
      REQUIRE(its != nullptr);
      CHECK(its->number == batch->number);
      x.insert(x.end(), its->x.begin(), its->x.end());
      labels.insert(labels.end(), its->labels.begin(), its->labels.end());
      rows.push_back(its->shape.n);
    }
    CHECK(x == batch->x);
    CHECK(labels == batch->labels);
    CHECK(rows == (batch->number < 3 ? std::vector{3, 3, 3, 3} : std::vector{3, 3, 1, 0}));
  }
  for (const auto& part : parts) CHECK(part->next() == nullptr);
}

TEST_CASE("a batch that ranks cannot share evenly, and a rank out of range, are refused") {
  const auto source = digits(20, 1);
  CHECK_THROWS_WITH(Loader(*source, {.batch = 10, .ranks = 4}), ContainsSubstring("give a multiple"));
  CHECK_THROWS_AS(Loader(*source, {.batch = 10, .ranks = 0}), UsageError);
  CHECK_THROWS_AS(Loader(*source, {.batch = 10, .rank = 2, .ranks = 2}), UsageError);
}
