#pragma once
// Rows as entries of a result file, in Google Benchmark's form.

#include <cstdint>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/rows/rows.h"

namespace lamina::bench {

/// Says why a group could not be measured.
void set_failure(Outcome&, const std::exception&);

/// What the units could do beside the sample, or else what was measured once; 0: not known.
double peak_beside(const Outcome&, const Sample&);

/// Rates, memory and readings beside the time of one sample.
std::map<std::string, double> counters_of(const Row&, const Outcome&, const Sample&);

/// What a row and its measurement say of themselves, beside times and counters. `samples`: that the entry is about.
void add_facts(nlohmann::ordered_json& entry, const Row&, const Outcome&, const std::vector<Sample>& samples);

/// One pass of a row; after the last of its samples, why there is no further one. `row_number`: in the file.
nlohmann::ordered_json pass_entry(const Row&, const Outcome&, std::size_t pass, std::int64_t row_number, int passes);

/// All passes of a row that has times: the entry of the pass in the middle, by time, with the times of all of them, in
/// their order, as the lists real_times and cpu_times.
nlohmann::ordered_json row_entry(const Row&, const Outcome&, std::int64_t row_number, int passes);

/// The library's unit of the row's time: "ms", of layers "us", of trainings "s".
struct RowUnit {
  const char* name;
  double per_second;
};
RowUnit unit_of(const Row&);

}  // namespace lamina::bench
