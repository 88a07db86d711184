#pragma once
// Batches on their way into a plan, and scores on their way out.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lamina/data.h"
#include "lamina/train.h"

namespace lamina::training {

/// The names of a graph's two inputs.
struct Inputs {
  std::string samples, labels;
};

/// The names of the graph's inputs. Throws UsageError unless the graph is as Trainer documents.
Inputs inputs_of(const Graph&);

/// Throws UsageError if the source does not fit the plan.
void check_fits(const Plan&, const Inputs&, const Source&);

/// Copies samples and labels to their tensors, in the order of the device's queue. If the device has staging memory,
/// the host goes on at once. It is at most two batches ahead: it waits before it writes to memory that is still read.
class Uploads {
 public:
  Uploads(Device&, const Tensor& samples, const Tensor& labels);
  void give(std::span<const float> samples, std::span<const float> labels);

 private:
  Device* device_;
  Tensor samples_, labels_;
  std::array<std::unique_ptr<Staging>, 2> staging_;  // two buffers, used in turns; null: an upload waits
  std::size_t turn_ = 0;
};

/// Brings batches to a plan. A batch that is not full is filled up with zeros, whose label is -1.
class Feed {
 public:
  Feed(const Plan&, const Inputs&);
  void give(const Batch&);
  int batch() const { return static_cast<int>(labels_.size()); }

 private:
  Uploads uploads_;
  std::vector<float> samples_, labels_;  // samples and labels of a batch that is not full
};

/// The output of each batch of an epoch, kept on the device until it is asked for.
class Scores {
 public:
  Scores(Device&, DType, std::int64_t batches);
  void clear(Device&);                                           ///< enqueues
  void keep(Device&, const Tensor& output, std::int64_t batch);  ///< enqueues
  Score read_one(Device&, std::int64_t batch) const;             ///< allocates nothing; waits
  std::vector<Score> read(Device&, std::int64_t batches) const;  ///< scores of the first `batches`; waits

 private:
  void* row(std::int64_t batch) const;
  Tensor rows(std::int64_t first, std::int64_t count) const;
  DType dtype_;
  Buffer rows_;  // loss and accuracy of each batch
};

/// The mean over an epoch of `samples` samples in batches of `batch`.
Score mean(const std::vector<Score>&, std::int64_t samples, int batch);

}  // namespace lamina::training
