#pragma once
// Rows as entries of a result file, in Google Benchmark's form.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rows.h"

namespace lamina::bench {

using Run = benchmark::BenchmarkReporter::Run;

/// Counters by which a row's function tells its report what the library cannot take: the processor's seconds of an
/// iteration, and that no pass came of a run.
constexpr const char* cpu_counter = "lamina cpu seconds";
constexpr const char* lost_counter = "lamina lost";

/// Says why a group could not be measured.
void set_failure(Outcome&, const std::exception&);

/// Rates, memory and readings beside the time of one sample.
std::map<std::string, double> counters_of(const Row&, const Outcome&, const Sample&);

/// A run as the library writes it, with what the row and its measurement say beside times and counters. `samples`: that
/// it is about. A run without iterations is one that failed.
nlohmann::ordered_json entry_of(const Run&, const Row&, const Outcome&, const std::vector<Sample>& samples);

/// Why there is no further pass of a row. `row_number`: in the file.
nlohmann::ordered_json failure_entry(const Row&, const Outcome&, std::int64_t row_number, int passes);

/// All passes of a row that has times: the entry of the pass in the middle, by time, with the times of all of them, in
/// their order, as the lists real_times and cpu_times.
nlohmann::ordered_json row_entry(const Row&, const Outcome&, std::int64_t row_number, int passes);

/// Milliseconds, of layers microseconds, of trainings seconds.
benchmark::TimeUnit unit_of(const Row&);

}  // namespace lamina::bench
