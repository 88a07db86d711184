#pragma once
// What is measured, and what becomes of many of them.

#include <vector>

namespace lamina::bench {

/// One timed piece of work.
struct Sample {
  double seconds = 0;
  double cpu_seconds = 0;  ///< of all threads of the process meanwhile
};

double mean(const std::vector<double>&);
double median(std::vector<double>);
double deviation(const std::vector<double>&);  ///< with n - 1; 0 for fewer than two

std::vector<double> seconds_of(const std::vector<Sample>&);
std::vector<double> cpu_seconds_of(const std::vector<Sample>&);

}  // namespace lamina::bench
