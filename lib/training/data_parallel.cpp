// The work that a trainer does together with the other ranks.

#include "lamina/train.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "lamina/error.h"

namespace lamina {

DataParallel::DataParallel(Communicator* all)
    : alone_(all == nullptr ? make_communicator("self") : nullptr), all_(all == nullptr ? alone_.get() : all) {}

void DataParallel::make_buckets(const Plan& plan, std::size_t bytes) {
  dtype_ = parameter_dtype(plan.options().dtype);
  // throws now if the communicator cannot sum on this device
  if (size() > 1) all_->start_all_reduce(plan.backend().device(), nullptr, 0, dtype_);
  std::map<std::byte*, std::pair<std::int64_t, std::size_t>> gradients;  // number of elements and last call, by address
  for (std::size_t call = plan.forward_calls(); call < plan.calls().size(); ++call)
    if (plan.calls()[call].covers(Pass::backward_params))
      for (const Tensor& dw : plan.args(call).dw)
        if (dw) gradients[dw.as<std::byte>()] = {dw.shape.count(), call};

  buckets_.clear();
  std::byte* end = nullptr;  // end of the bucket; between two gradients there are zeros on every rank
  std::size_t last_call = 0;
  for (auto at = gradients.rbegin(); at != gradients.rend(); ++at) {
    const auto& [count, call] = at->second;
    if (end == nullptr) end = at->first + static_cast<std::size_t>(count) * size_of(dtype_);
    last_call = std::max(last_call, call);
    const auto size = static_cast<std::size_t>(end - at->first);
    if (size < bytes && std::next(at) != gradients.rend()) continue;
    buckets_.push_back({at->first, static_cast<std::int64_t>(size / size_of(dtype_)), last_call});
    end = at->first;
    last_call = 0;
  }
}

void DataParallel::join(const Plan& plan, std::size_t first, std::size_t call) {
  if (call == first || plan.calls()[call - 1].cross_rank_sums == 0) return;
  Device& device = plan.backend().device();
  const Args& args = plan.args(call - 1);
  all_->start_all_reduce(device, first == 0 ? args.saved : args.scratch, plan.calls()[call - 1].cross_rank_sums,
                         DType::f64);
  all_->finish(device);
}

void DataParallel::forward(Plan& plan) {
  if (size() == 1) return plan.forward();
  plan.forward([&](std::size_t call) { join(plan, 0, call); });
}

void DataParallel::backward(Plan& plan, bool sums) {
  statistics_differ_ = size() > 1 && plan.options().sync_batch_norm_ranks == 1;
  if (size() == 1) return plan.backward();
  Device& device = plan.backend().device();
  auto next = sums ? buckets_.begin() : buckets_.end();
  plan.backward([&](std::size_t call) {
    join(plan, plan.forward_calls(), call);
    for (; next != buckets_.end() && next->last_call < call; ++next)
      all_->start_all_reduce(device, next->data, next->count, dtype_);
  });
  all_->finish(device);
}

std::vector<Score> DataParallel::joined(std::vector<Score> scores, std::int64_t samples, int part) const {
  if (size() == 1) return scores;
  const std::int64_t batch = std::int64_t{part} * size();
  std::vector<double> sums;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::int64_t all = std::min(batch, samples - static_cast<std::int64_t>(i) * batch);
    const std::int64_t mine = std::clamp<std::int64_t>(all - std::int64_t{part} * rank(), 0, part);
    const double share = static_cast<double>(mine) / static_cast<double>(all);
    sums.insert(sums.end(), {share * scores[i].loss, share * scores[i].accuracy});
  }
  all_->sum(sums);
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = {sums[2 * i], sums[2 * i + 1]};
  return scores;
}

void DataParallel::average_statistics(Plan& plan) {
  if (!std::exchange(statistics_differ_, false)) return;
  Device& device = plan.backend().device();
  for (const Stored& its : plan.graph().states()) {
    const Op& op = plan.graph().nodes()[static_cast<std::size_t>(its.first.node)].op;
    if (!std::holds_alternative<BatchNorm>(op) || its.fixed) continue;
    const Tensor state = plan.state(its.name);
    std::vector<double> values(static_cast<std::size_t>(state.shape.count()));
    download(device, std::span<double>(values), state);
    all_->sum(values);
    for (double& value : values) value /= size();
    upload(device, state, std::span<const double>(values));
  }
}

void DataParallel::write_once(const std::function<void()>& write) const {
  std::exception_ptr thrown;
  std::string error;  // kind and text of the error
  try {
    if (rank() == 0) write();
  } catch (const Error& unwritten) {
    thrown = std::current_exception();
    error = (dynamic_cast<const FileError*>(&unwritten) != nullptr ? "f" : "e") + std::string(unwritten.what());
  }
  error = broadcast_text(*all_, error);
  if (thrown) std::rethrow_exception(thrown);
  if (error.starts_with('f')) throw FileError(error.substr(1));
  if (!error.empty()) throw Error(error.substr(1));
}

}  // namespace lamina
