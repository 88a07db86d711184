// What becomes of finished rows.

#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "library.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

/// JSON knows no NaN, which a coefficient of variation around zero is.
void drop_what_is_no_number(benchmark::BenchmarkReporter::Run& run) {
  std::erase_if(run.counters, [](const auto& counter) { return !std::isfinite(counter.second.value); });
  if (!std::isfinite(run.real_accumulated_time)) run.real_accumulated_time = 0;
  if (!std::isfinite(run.cpu_accumulated_time)) run.cpu_accumulated_time = 0;
}

double aggregate(const std::string& name, const std::vector<double>& x) {
  if (name == "mean") return mean(x);
  if (name == "median") return median(x);
  if (name == "stddev") return deviation(x);
  return mean(x) > 0 ? deviation(x) / mean(x) : 0;
}

/// Those that a run of the file is about: its own sample, or of an aggregate all.
std::vector<Sample> samples_of(const Json& run, const std::vector<Sample>& all) {
  if (run.value("run_type", "") != "iteration") return all;
  const auto index = run.value("repetition_index", std::size_t{0});
  return index < all.size() ? std::vector<Sample>{all[index]} : std::vector<Sample>{};
}

/// What a row is of, as fields.
Json fields_of(const RowKey& key) {
  Json fields = {{"what", key.what}, {"network", key.network}};
  if (!key.layer.empty()) fields["layer"] = key.layer;
  fields["part"] = key.part;
  fields["backend"] = key.backend;
  if (!key.algorithm.empty()) fields["algorithm"] = key.algorithm;
  fields["type"] = key.type;
  fields["layout"] = key.layout;
  fields["batch"] = key.batch;
  for (const auto& [what, value] : key.differs) fields["differs"][what] = value;
  return fields;
}

/// What a row says of itself, and the median of the clocks that its device reported.
std::string with_clock(const std::string& note, const std::vector<Sample>& samples) {
  std::vector<double> mhz;
  for (const Sample& sample : samples)
    if (sample.state.sm_mhz) mhz.push_back(*sample.state.sm_mhz);
  if (mhz.empty()) return note;
  return fmt::format("{}{}{:.0f} MHz", note, note.empty() ? "" : ", ", median(mhz));
}

}  // namespace

Report::Report(const std::vector<Row>& rows, ResultFile& file, Screen screen, Table* table, Progress& progress)
    : file_(&file), screen_(screen), table_(table), progress_(&progress) {
  for (const Row& row : rows) {
    rows_[row.name] = &row;
    name_width_ = std::max(name_width_, row.name.size());
  }
  json_.SetOutputStream(&text_);
}

bool Report::ReportContext(const Context& context) {
  text_.str({});
  json_.ReportContext(context);  // leaves the list of rows open
  file_->document = Json::parse(text_.str() + "]}");
  if (screen_ == Screen::console && table_ == nullptr)
    fmt::print("{:<{}} {:>12} {:>10} {:>11} {:>10} {:>7}\n", "row", name_width_, "median ms", "+- ms", "images/s",
               "GFLOP/s", "of peak");
  if (table_ != nullptr && screen_ == Screen::console) fmt::print("{}", table_->header());
  std::fflush(stdout);
  return true;
}

Report::Run Report::documented(const Run& run, const Row& row) const {
  Run copy = run;
  // The library would append "/iterations:1/repeats:3/manual_time", which is of no use in a name that is joined by.
  copy.run_name = {};
  copy.run_name.function_name = row.name;
  const std::vector<double> cpu = cpu_seconds_of(row.group->samples[row.part]);
  if (!failed(run) && run.run_type == Run::RT_Iteration) {
    const auto i = static_cast<std::size_t>(run.repetition_index);
    if (i < cpu.size()) copy.cpu_accumulated_time = cpu[i];
  } else if (run.run_type == Run::RT_Aggregate) {
    const double value = aggregate(run.aggregate_name, cpu);
    const bool is_time = run.aggregate_unit == benchmark::kTime;  // which the library divides by the iterations
    copy.cpu_accumulated_time = is_time ? value * static_cast<double>(run.iterations) : value;
  }
  copy.report_label = row.group->note;
  drop_what_is_no_number(copy);
  return copy;
}

Json Report::as_json(const std::vector<Run>& runs) {
  if (runs.empty()) return Json::array();
  text_.str({});
  json_.ReportRuns(runs);
  const std::string text = text_.str();
  const std::size_t first = text.find('{');  // behind the comma that follows an earlier row
  return Json::parse(fmt::format("[{}]", text.substr(first)));
}

std::vector<Report::Run> Report::worth_keeping(const std::vector<Run>& runs, const Row& row) const {
  const Group& group = *row.group;
  const std::size_t measured = group.samples[row.part].size();
  std::vector<Run> kept;
  bool said = false;
  for (const Run& run : runs) {
    const bool aggregate = run.run_type == Run::RT_Aggregate;
    if (aggregate && measured < static_cast<std::size_t>(run.repetitions)) continue;  // counts passes that never were
    if (aggregate || static_cast<std::size_t>(run.repetition_index) < measured) {
      kept.push_back(documented(run, row));
      continue;
    }
    // Each later pass fails alike; and what an interrupt kept from running has nothing to tell.
    if (said || group.failure.empty()) continue;
    said = true;
    kept.push_back(documented(run, row));
    if (!failed(run)) set_failed(kept.back(), group.failure);
  }
  return kept;
}

void Report::ReportRuns(const std::vector<Run>& runs) {
  if (runs.empty()) return;
  const auto found = rows_.find(runs.front().run_name.function_name);
  if (found == rows_.end()) return;
  const Row& row = *found->second;
  const bool interrupted_before = row.group->samples[row.part].empty() && row.group->failure.empty();
  if (interrupted_before) return;

  for (Json& run : as_json(worth_keeping(runs, row))) {
    run["key"] = fields_of(row.key);
    if (!row.group->algorithm.empty()) run["algorithm"] = row.group->algorithm;
    const std::vector<Sample> samples = samples_of(run, row.group->samples[row.part]);
    if (const Launches launches = launches_of(samples); launches != Launches::none)
      run["launches"] = to_string(launches);
    if (const std::string reasons = throttled_of(samples); !reasons.empty()) run["throttled"] = reasons;
    file_->document["benchmarks"].push_back(std::move(run));
  }
  file_->save_now_and_then();
  progress_->clear();
  // The library reports the passes, and then what it computed from them.
  if (runs.front().run_type == Run::RT_Iteration) show(row);
}

void Report::show(const Row& row) {
  if (screen_ == Screen::json) return;
  const Group& group = *row.group;
  if (table_ != nullptr) {
    fmt::print("{}", table_->take(row));
    std::fflush(stdout);
    return;
  }
  const std::vector<double> seconds = seconds_of(group.samples[row.part]);
  if (!group.failure.empty() || seconds.empty()) {
    std::string& before = refused_[group.facts.backend];  // a backend that cannot run says so once
    const bool again = group.unsupported && group.failure == before;
    fmt::print("{:<{}} {}\n", row.name, name_width_, again ? "Unsupported, as above" : group.failure);
    if (group.unsupported) before = group.failure;
  } else {
    const double middle = median(seconds);
    const std::string note = with_clock(group.note, group.samples[row.part]);
    const Work& work = group.work[row.part];
    const auto or_blank = [](double value, const char* format) {
      return value > 0 && std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : std::string();
    };
    fmt::print("{:<{}} {:>12.3f} {:>10.3f} {:>11} {:>10} {:>7}{}{}\n", row.name, name_width_, 1e3 * middle,
               1e3 * deviation(seconds), or_blank(work.images / middle, "{:.1f}"),
               or_blank(1e-9 * work.flops / middle, "{:.1f}"),
               or_blank(group.peak_flops > 0 ? 100 * work.flops / middle / group.peak_flops : 0, "{:.0f} %"),
               note.empty() ? "" : "  ", note);
  }
  std::fflush(stdout);
}

}  // namespace lamina::bench
