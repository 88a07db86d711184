// Checkpoints: runs that stop and resume, and files that are from another run, damaged, or cannot be written.

#include <fstream>

#include "lamina/safetensors.h"
#include "tests/io/files.h"
#include "tests/support/catch.h"
#include "tests/train/networks.h"
#include "tests/train/runs.h"

using namespace lamina::test;

namespace {

/// A fixture for trainings on 16 digits, with a checkpoint.
struct OnDigits {
  std::unique_ptr<Source> source = digits(16, 1);
  Folder folder;
  TrainerOptions options{.checkpoint = folder / "run.safetensors"};
};

}  // namespace

TEST_CASE("a run that stops anywhere resumes from its checkpoint, and ends with the same bits") {
  for (const auto& backend : tested_backends())
    for (const auto& [network, dtype] :
         {std::pair{"plain", DType::f32}, std::pair{"normalised", DType::f32}, std::pair{"normalised", DType::bf16},
          std::pair{"plain", DType::f16}, std::pair{"shared", DType::f64}}) {
      const Graph graph =
          network == std::string("shared") ? shared_network(8) : small_network(8, network == std::string("normalised"));
      if (is_half(dtype) && backend->name() != "eigen") continue;
      const auto source = digits(40, 1), unseen = digits(10, 2);
      const Folder folder;
      TrainerOptions options{
          .optimiser = Adam{}, .accumulate = 2, .seed = 9, .plan = {.dtype = dtype}, .validation = unseen.get()};
      Trainer straight(graph, *backend, *source, options);
      straight.train(3);

      options.checkpoint = folder.path() / "run.safetensors";
      options.checkpoint_updates = 2;
      int resumed = 0;
      for (const int stop : {0, 1, 3, 4, 5, 2, 4, 1, 1000}) {
        options.after_batch = stop_after(stop);
        Trainer trainer(graph, *backend, *source, options);
        resumed += trainer.resumed() ? 1 : 0;
        try {
          trainer.train(3);
        } catch (const Interrupted&) {
          continue;
        }
        INFO(backend->describe());
        CHECK(resumed > 3);
        CHECK(everything(trainer.plan()) == everything(straight.plan()));
        if (dtype == DType::f16) {
          LossScale got = trainer.plan().loss_scale(), want = straight.plan().loss_scale();
          got.inverse = want.inverse;  // the value of the last update; there may be none since the resume
          CHECK(got == want);
        }
        REQUIRE(trainer.epochs().size() == 3);
        for (std::size_t e = 0; e < 3; ++e) CHECK(same(trainer.epochs()[e], straight.epochs()[e]));
      }
      // A complete run has nothing left to do when it resumes.
      options.after_batch = nullptr;
      Trainer complete(graph, *backend, *source, options);
      CHECK(complete.train(3).size() == 3);
      CHECK(everything(complete.plan()) == everything(straight.plan()));
    }
}

TEST_CASE("a resumed run continues with the learning rate of its next update, with every schedule") {
  const auto source = digits(40, 1);
  const std::pair<const char*, Schedule> schedules[] = {{"constant", constant_rate(1e-2)},
                                                        {"inverse time", inverse_time(1e-2, 0.1)},
                                                        {"steps", step_decay(1e-2, 0.5, 3)},
                                                        {"cosine", cosine(1e-2, 1e-4, 9)},
                                                        {"warm-up", warm_up(4, cosine(1e-2, 1e-4, 9))}};
  std::vector<std::vector<Values>> ends;
  for (const auto& [name, schedule] : schedules) {
    INFO(name);
    const Folder folder;
    TrainerOptions options{.optimiser = Sgd{.momentum = 0.9}, .learning_rate = schedule, .seed = 4};
    Trainer straight(small_network(8), oracle(), *source, options);
    straight.train(2);
    options.checkpoint = folder / "run.safetensors";
    options.checkpoint_updates = 1;
    bool done = false;
    for (int trainers = 0; !done; ++trainers) {
      options.after_batch = stop_after(3);
      Trainer trainer(small_network(8), oracle(), *source, options);
      CHECK(trainer.resumed() == (trainers > 0));
      try {
        trainer.train(2);
        done = true;
        CHECK(trainers >= 2);
        CHECK(everything(trainer.plan()) == everything(straight.plan()));
      } catch (const Interrupted&) {
      }
    }
    ends.push_back(everything(straight.plan()));
    TrainerOptions other = options;
    other.learning_rate = step_decay(1e-2, 0.5, 4);
    CHECK_THROWS_AS(Trainer(small_network(8), oracle(), *source, other), UsageError);
  }
  for (std::size_t i = 1; i < ends.size(); ++i) CHECK(ends[i] != ends[i - 1]);
}

TEST_CASE("a trainer can go on after an exception in a callback") {
  const auto source = digits(40, 1), unseen = digits(10, 2);
  TrainerOptions options{.validation = unseen.get()};
  Trainer straight(small_network(8), oracle(), *source, options);
  straight.train(2);
  options.after_batch = stop_after(3);
  Trainer trainer(small_network(8), oracle(), *source, options);
  CHECK_THROWS_AS(trainer.train(2), Interrupted);
  trainer.train(2);
  CHECK(everything(trainer.plan()) == everything(straight.plan()));
  CHECK(same(trainer.epochs()[0], straight.epochs()[0]));
}

TEST_CASE_METHOD(OnDigits, "a run resumed at the end of an epoch has no scores of batches until its first batch") {
  Trainer first(small_network(8), oracle(), *source, options);
  CHECK(first.batch_scores().empty());
  first.train(1);
  CHECK(first.batch_scores().size() == 2);
  Trainer second(small_network(8), oracle(), *source, options);
  CHECK(second.resumed());
  CHECK(second.batch_scores().empty());
  second.train(2);
  REQUIRE(second.batch_scores().size() == 2);
  for (const Score& score : second.batch_scores()) CHECK(score.loss > 0);
}

TEST_CASE_METHOD(OnDigits, "a checkpoint that lacks a tensor, or a file that is no checkpoint, is an error") {
  Trainer(small_network(8), oracle(), *source, options).train(1);
  TensorFile whole = read_safetensors(options.checkpoint);
  whole.erase("trainer/checksum");
  for (const auto& [name, tensor] : whole) {
    TensorFile lacking = whole;
    lacking.erase(name);
    write_safetensors(options.checkpoint, lacking);
    INFO("without " << name);
    CHECK_THROWS_AS(Trainer(small_network(8), oracle(), *source, options), FileError);
  }
  for (const char* name : {"trainer/counters", "trainer/steps/drop.step", "trainer/optimiser/fc.weight.mean"}) {
    TensorFile shorter = whole;
    shorter[name] = {DType::f64, {1}, {0.5}};
    write_safetensors(options.checkpoint, shorter);
    INFO("wrong " << name);
    CHECK_THROWS_AS(Trainer(small_network(8), oracle(), *source, options), FileError);
  }
  std::ofstream(options.checkpoint) << "no tensors";
  CHECK_THROWS_AS(Trainer(small_network(8), oracle(), *source, options), FileError);
}

TEST_CASE_METHOD(OnDigits, "a changed byte in a checkpoint is detected, and older files without a checksum are read") {
  Trainer(small_network(8), oracle(), *source, options).train(1);
  const std::string whole = contents(options.checkpoint);
  const std::size_t first = (whole.find("}}") + 9) / 8 * 8;  // the header is padded
  for (std::size_t at = first; at < whole.size(); at += 61) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1 << at % 8);
    write(options.checkpoint, flipped);
    INFO("byte " << at << " of " << whole.size());
    CHECK_THROWS_WITH(Trainer(small_network(8), oracle(), *source, options), ContainsSubstring("is damaged"));
  }
  write(options.checkpoint, whole);
  TensorFile older = read_safetensors(options.checkpoint);
  older.erase("trainer/checksum");
  write_safetensors(options.checkpoint, older);
  CHECK(Trainer(small_network(8), oracle(), *source, options).resumed());
}

TEST_CASE_METHOD(OnDigits, "a checkpoint of another run is refused, and the error says what differs") {
  const auto other_digits = digits(16, 2), fewer = digits(8, 1);
  Trainer(small_network(8), oracle(), *source, options).train(1);
  const auto said = [&](const Graph& graph, const Source& samples, const TrainerOptions& how) {
    const std::string text = said_by<UsageError>([&] { Trainer(graph, oracle(), samples, how); });
    const std::string before = "is the checkpoint of another run: ";
    const std::size_t begin = text.find(before) + before.size();
    return text.substr(begin, text.find("; give another file, or remove it") - begin);
  };
  TrainerOptions other = options;
  other.seed = 1;
  other.shuffle = false;
  CHECK(said(small_network(8), *source, other) == "it has shuffled, seed 0, and this run in order, seed 1");
  other = options;
  other.optimiser = Sgd{.momentum = 0.9, .weight_decay = 0.1};
  other.learning_rate = constant_rate(0.1);
  CHECK(said(small_network(8), *source, other) ==
        "it has adam(beta1 0.9, beta2 0.999, epsilon 1e-08), and this run sgd(momentum 0.9, weight_decay 0.1)");
  other = options;
  other.learning_rate = constant_rate(0.1);
  CHECK(said(small_network(8), *source, other) == "it has other learning rates");
  CHECK(said(small_network(8), *other_digits, options) == "it has other samples");
  CHECK(said(small_network(4), *source, options) ==
        "it has batch 8 x 1 of 16 samples, and this run batch 4 x 1 of 16 samples");
  CHECK(said(small_network(8), *fewer, options) ==
        "it has batch 8 x 1 of 16 samples, and this run batch 8 x 1 of 8 samples");
  CHECK(said(small_network(8, true), *source, options) ==
        "it has a network of 1570 parameters in f32, and this run a network of 1576 parameters in f32");
  CHECK(said(small_network(8, false, 0.5), *source, options) == "it has a network of other ops or shapes");
}

TEST_CASE("an error reports a checkpoint that cannot be written after a batch or epoch, and the run can go on") {
  const auto source = digits(40, 1);
  TrainerOptions options{.seed = 3};
  Trainer straight(small_network(8), oracle(), *source, options);
  straight.train(2);
  for (const std::int64_t every : {0, 2}) {
    const Folder folder;
    const auto runs = folder / "runs";
    std::filesystem::create_directory(runs);
    options.checkpoint = runs / "run.safetensors";
    options.checkpoint_updates = every;
    int batches = 0, epochs = 0, failures = 0;
    options.after_batch = [&](const Progress&) {
      if (++batches == 1) std::filesystem::remove_all(runs);
    };
    options.after_epoch = [&](const EpochResult&) { ++epochs; };
    Trainer trainer(small_network(8), oracle(), *source, options);
    while (trainer.epochs().size() < 2) try {
        trainer.train(2);
      } catch (const FileError& error) {
        INFO(error.what());
        CHECK(std::string(error.what()).find("make the folder " + runs.string()) != std::string::npos);
        CHECK(batches == (every == 0 ? 5 : 2));
        CHECK(epochs == (every == 0 ? 1 : 0));
        ++failures;
        std::filesystem::create_directory(runs);
      }
    CHECK(failures == 1);
    CHECK(batches == 10);
    CHECK(epochs == 2);
    CHECK(everything(trainer.plan()) == everything(straight.plan()));
    Trainer again(small_network(8), oracle(), *source, options);
    CHECK(again.epochs().size() == 2);
  }
}

TEST_CASE("a checkpoint with other data is another run's, even if the number of samples is the same") {
  const Folder folder;
  const TrainerOptions options{.checkpoint = folder / "run.safetensors"};
  const auto source = [](std::uint64_t seed, const ImageOptions& how = {}) {
    return image_source(Glyphs(Glyphs::mnist()).draw(16, seed), how);
  };
  const auto first = source(1);
  Trainer(small_network(8), oracle(), *first, options).train(1);
  CHECK(Trainer(small_network(8), oracle(), *source(1), options).resumed());
  for (const auto& other : {source(2), source(1, {.scale = 1}), source(1, {.flip = true})})
    CHECK_THROWS_AS(Trainer(small_network(8), oracle(), *other, options), UsageError);
  const auto one = digits(1, 1);
  const TrainerOptions of_one{.checkpoint = folder / "one.safetensors"};
  Trainer(small_network(1), oracle(), *one, of_one).train(1);
  CHECK(Trainer(small_network(1), oracle(), *one, of_one).resumed());
}

TEST_CASE_METHOD(OnDigits, "a checkpoint in a missing folder is an error before the first epoch") {
  CHECK_THROWS_AS(Trainer(small_network(8), oracle(), *source, {.checkpoint = folder / "none/run.safetensors"}),
                  FileError);
}
