// The loop that measures rows, and the progress line: the running row, and the time left.

#include "meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "bench/io/interrupt.h"
#include "entries.h"
#include "lamina/error.h"

namespace lamina::bench {

constexpr double guessed_share_of_peak = 0.5;  // share of the peak that is assumed until times are measured

bool Meter::stops() const {
  int signal = interrupted();
  if (session_->ranks != nullptr) session_->ranks->broadcast(&signal, sizeof signal);
  return signal != 0;
}

Outcome Meter::take(const Row& row) {
  Outcome its = std::move(outcome(row));
  outcomes_.erase(row.group.get());
  close();
  return its;
}

void Meter::open(const Group& group, Outcome& outcome) {
  const auto& [network, backend, dtype, layout, batch] = group.config;
  close();  // two plans at once may not fit
  beside_ = std::make_unique<PeakBeside>(session_->peaks, backend, dtype);
  watch_.begin();
  {
    const EndsPlanning ends(group.ranks == 1);  // of several ranks, none may leave: the others would wait for it
    run_ = group.open();
  }
  outcome.memory = run_->plan().memory();
  outcome.bytes = run_->bytes();
  outcome.peak_flops_per_second = session_->peaks.of(backend, dtype).flops_per_second;
  beside_->begin();
  open_ = &group;
}

void Meter::pass(const Group& group, Outcome& outcome) {
  std::vector<Sample> samples = run_->pass();
  set_moment(samples, beside_->end());
  for (std::size_t part = 0; part < samples.size(); ++part) outcome.samples[part].push_back(samples[part]);
  outcome.memory = run_->plan().memory();
  outcome.counters = run_->counters();
  outcome.note = run_->note();
  outcome.algorithm = run_->algorithm();
  watch_.look();
  outcome.conditions = watch_.conditions();
  if (group.ranks > 1) outcome.conditions.others.reset();  // not known: other ranks look like other programs
}

bool Meter::measure(const Row& row, std::size_t index) {
  const Group& group = *row.group;
  Outcome& its = outcome(row);
  const std::string& backend = group.config.backend;
  const bool counted = options_->noise == 0 && options_->min_time == 0;
  const int passes = counted ? passes_on(backend, options_->passes) : 0;
  if (its.samples[row.part].size() > index) return true;
  if (!its.failure.empty() || stops()) return false;
  try {
    if (const auto lost = lost_.find(backend); lost != lost_.end())
      throw DeviceError(fmt::format("the device of {} failed before: {}", backend, lost->second));
    if (open_ != &group) {
      progress_->show(row, 0, passes);
      open(group, its);
      progress_->pass_done(group);
      if (stops()) return false;
    }
    progress_->show(row, static_cast<int>(index) + 1, passes);
    pass(group, its);
    if (!options_->trace.empty()) add_spans(to_string(group.config), run_->spans());
    progress_->pass_done(group);
    return true;
  } catch (const Interrupted&) {
    return false;
  } catch (const std::exception& error) {
    set_failure(its, error);
    if (group.ranks > 1 && its.kind != Failure::unsupported)
      throw;  // the error must end all ranks: other ranks wait for this rank
    close();
    progress_->group_failed(group, passes + 1 - static_cast<int>(index));
    if (index > 0) fmt::print(stderr, "lamina_bench: {}: {}\n", group.title, its.failure);
    const bool device_failed =
        dynamic_cast<const DeviceError*>(&error) != nullptr && dynamic_cast<const OutOfMemory*>(&error) == nullptr;
    if (!device_failed || lost_.contains(backend)) return false;
    try {
      session_->backends.at(backend).device().synchronize();
    } catch (const std::exception& again) {
      lost_[backend] = again.what();
    }
    return false;
  }
}

/// Adds the spans of one pass of all ranks to the trace. Each rank has two lanes: passes and sums. Every rank must call
/// it.
void Meter::add_spans(const std::string& network, const std::vector<Span>& spans) {
  if (spans.empty()) return;  // layers have no spans, on any rank
  Communicator& ranks = *session_->ranks;
  if (network != traced_) {
    traced_ = network;
    trace_start_ = spans.front().begin;
    process_ = trace_.add_process(network);
    for (int rank = 0; rank < ranks.size(); ++rank) {
      trace_.add_lane(process_, 2 * rank, fmt::format("rank {}", rank));
      trace_.add_lane(process_, 2 * rank + 1, fmt::format("rank {}: sums", rank));
    }
  }
  TraceFile mine;
  for (const Span& span : spans)
    mine.add(process_, 2 * ranks.rank() + (span.is_sum ? 1 : 0), span.what, span.begin - trace_start_,
             span.end - span.begin, Json::object());
  for (int rank = 0; rank < ranks.size(); ++rank)
    trace_.append(Json::parse(broadcast_text(ranks, mine.events().dump(), rank)));
}

Progress::Progress(Peaks& peaks, const std::vector<Row>& rows, int passes) {
  double seconds = 0;
  std::set<const Group*> seen;
  for (const Row& row : rows) {
    const Group& group = *row.group;
    if (!seen.insert(&group).second) continue;
    const std::string& backend = group.config.backend;
    const double flops = group.flops_per_pass * (1 + passes_on(backend, passes));  // 1: the pass that warms up
    total_ += flops;
    const double peak = peaks.of(backend, group.config.dtype).flops_per_second;
    if (peak > 0) seconds += flops / (guessed_share_of_peak * peak);
  }
  group_count_ = seen.size();
  guessed_rate_ = seconds > 0 ? total_ / seconds : 0;
  start_ = steady_seconds();
}

double Progress::left_seconds() const {
  const double elapsed = steady_seconds() - start_;
  // The guess weighs as much as a twentieth of the work, so that the first small row does not decide alone.
  const double weight = total_ / 20;
  const double guessed = guessed_rate_ > 0 ? weight / guessed_rate_ : 0;
  if (done_ + weight <= 0) return 0;
  return (total_ - done_) * (elapsed + guessed) / (done_ + weight);
}

void Progress::show(const Row& row, int pass, int passes) {
  const bool new_group = shown_ != row.group.get();
  if (new_group && group_ < group_count_) ++group_;
  shown_ = row.group.get();
  if (!on_terminal() && !new_group) return;
  const std::string doing = pass == 0     ? "warming up"
                            : passes == 0 ? fmt::format("pass {}", pass)
                                          : fmt::format("pass {} of {}", pass, passes);
  std::string text = fmt::format("[{}/{}] {}, {}", group_, group_count_, row.group->title, doing);
  if (passes > 0 && (guessed_rate_ > 0 || done_ > 0))
    text += fmt::format(", about {} left", seconds_text(left_seconds()));
  show_step(text);
}

void Progress::pass_done(const Group& group) { done_ = std::min(total_, done_ + group.flops_per_pass); }

void Progress::group_failed(const Group& group, int passes_left) {
  total_ = std::max(done_, total_ - group.flops_per_pass * std::max(passes_left, 0));
}

}  // namespace lamina::bench
