#pragma once
// Data-parallel training: what a trainer does together with the other ranks. Alone, it does nothing.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lamina/communicator.h"
#include "lamina/train.h"

namespace lamina {

class LAMINA_API DataParallel {
 public:
  explicit DataParallel(Communicator*);  ///< null: one rank, which is alone

  int rank() const { return all_->rank(); }
  int size() const { return all_->size(); }
  Communicator& communicator() const { return *all_; }

  /// Parts of the row of all parameter gradients, of at least so many bytes, the last first: backward finishes the row
  /// from its end.
  void make_buckets(const Plan&, std::size_t bytes);

  void forward(Plan&);

  /// A backward pass. With `sums`, the gradients become their sums over all ranks: the sum of a bucket begins when its
  /// last gradient is finished, while the pass goes on.
  void backward(Plan&, bool sums);

  /// Scores of batches of all ranks, from those of this rank's parts. An epoch has `samples`, a part up to `part`.
  std::vector<Score> joined(std::vector<Score>, std::int64_t samples, int part) const;

  /// Gives running statistics of batch norm their mean over all ranks. They are linear in those of the batches, so it
  /// does not matter when.
  void average_statistics(Plan&);

  /// Rank 0 writes. If it cannot, every rank throws: a FileError if its error is one, else an Error with its text.
  void write_once(const std::function<void()>& write) const;

 private:
  /// Adds up what the call before this one, of a pass that begins with call `first`, leaves for it.
  void join(const Plan&, std::size_t first, std::size_t call);

  struct Bucket {
    std::byte* data;
    std::int64_t count;
    std::size_t last_call;  ///< the last that writes to it
  };

  std::unique_ptr<Communicator> alone_;
  Communicator* all_;
  DType dtype_ = DType::f32;  // of gradients
  std::vector<Bucket> buckets_;
  bool statistics_differ_ = false;
};

}  // namespace lamina
