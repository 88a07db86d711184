#pragma once
// The work that a trainer does together with the other ranks. A single rank does nothing here.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lamina/communicator.h"
#include "lamina/train.h"

namespace lamina {

class LAMINA_API DataParallel {
 public:
  explicit DataParallel(Communicator*);  ///< null: a single rank

  int rank() const { return all_->rank(); }
  int size() const { return all_->size(); }
  Communicator& communicator() const { return *all_; }

  /// Cuts the row of all parameter gradients into buckets of at least `bytes` bytes, the last bucket first, because
  /// backward finishes the row from its end.
  void make_buckets(const Plan&, std::size_t bytes);

  void forward(Plan&);

  /// A backward pass. With `sums`, the gradients become their sums over all ranks. The sum of a bucket begins when its
  /// last gradient is finished, while the pass goes on.
  void backward(Plan&, bool sums);

  /// Scores of the global batches, from those of this rank's parts. An epoch has `samples` samples, a part up to
  /// `part`.
  std::vector<Score> joined(std::vector<Score>, std::int64_t samples, int part) const;

  /// Replaces the running statistics of batch norm by their mean over all ranks. They are linear in the statistics of
  /// the batches, so this may happen at any time.
  void average_statistics(Plan&);

  /// Lets rank 0 write. If it fails, every rank throws: a FileError if rank 0's error is one, else an Error with its
  /// text.
  void write_once(const std::function<void()>& write) const;

 private:
  /// Adds up over the ranks what the call before `call` left for it. `first` is the first call of the pass.
  void join(const Plan&, std::size_t first, std::size_t call);

  struct Bucket {
    std::byte* data;
    std::int64_t count;
    std::size_t last_call;  ///< number of the last call that writes to the bucket
  };

  std::unique_ptr<Communicator> alone_;
  Communicator* all_;
  DType dtype_ = DType::f32;  // type of gradients
  std::vector<Bucket> buckets_;
  bool statistics_differ_ = false;
};

}  // namespace lamina
