// A whole network's passes, timed one by one.

#include "net_run.h"

#include <cstdint>
#include <span>
#include <string>

#include "bench/machine/ranks.h"
#include "lamina/lamina.h"

namespace lamina::bench {
namespace {

/// Fills a tensor with standard normal numbers of the sequence of `key`, on the host, and uploads them: image by image,
/// so that they take little memory.
void draw(Device& device, const Tensor& tensor, std::uint64_t key) {
  std::vector<double> numbers(static_cast<std::size_t>(tensor.shape.image()));
  Tensor image = tensor;
  image.shape.n = 1;
  const std::int64_t between = tensor.layout == Layout::nchw ? tensor.pitch : tensor.pitch * tensor.shape.plane();
  for (std::int64_t n = 0; n < tensor.shape.n; ++n) {
    image.data = tensor.as<char>() + n * between * static_cast<std::int64_t>(size_of(tensor.dtype));
    fill_normal(numbers, key, static_cast<std::uint64_t>(n * tensor.shape.image()));
    upload(device, image, std::span<const double>(numbers));
  }
}

}  // namespace

NetRun::NetRun(const Graph& graph, Backend& backend, const Options& options, bool recorded, const TensorFile& weights,
               Communicator* ranks)
    : plan_(graph, backend, options), ranks_(ranks), stopwatch_(plan_.backend().device()) {
  if (training()) ranks_.make_buckets(plan_, TrainerOptions().bucket_bytes);
  if (!weights.empty()) load_weights(plan_, weights);
  pass();
  if (recorded) record();
}

std::vector<Sample> NetRun::pass(bool warm) {
  Device& device = plan_.backend().device();
  const std::string number = std::to_string(++drawn_);
  draw(device, plan_.input(), hash("x " + number));
  // Before forward, so that a GPU is not idle, and its clock does not fall, between the two passes.
  if (training()) draw(device, plan_.output_gradient(), hash("dy " + number));
  if (warm) untimed();
  std::vector<Sample> samples = {timed([this] { forward(); })};
  if (training()) {
    samples.push_back(timed([this] { backward(true); }));
    samples.back().sums = last_sums(ranks_.communicator());
  }
  return samples;
}

void NetRun::untimed() {
  forward();
  if (training()) backward(false);
}

Sample NetRun::timed(const std::function<void()>& work) {
  ranks_.communicator().barrier();
  Sample sample = joined(ranks_.communicator(), stopwatch_.time(work));
  if (forward_) sample.launches = Launches::replayed;
  return sample;
}

/// The first launch is to warm up as well.
void NetRun::record() {
  Device& device = plan_.backend().device();
  forward_ = device.capture([this] { plan_.forward(); });
  if (training()) backward_ = device.capture([this] { plan_.backward(); });
  pass();
}

}  // namespace lamina::bench
