#pragma once
// The same rows by several variants, each in a process of its own, in turns: versions of cuDNN, or builds of this
// program.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "comparison.h"
#include "options/options.h"

namespace lamina::bench {

struct Variant {
  std::string label;  ///< the directory of a cuDNN, the path of a program
  std::string program;
  std::vector<std::string> flags;
  std::map<std::string, std::string> environment{};
};

/// What the options ask to be compared; fewer than two: nothing.
std::vector<Variant> variants_of(const BenchOptions&);

/// The arguments for a child: ours, without those that say where rows go and what is compared.
std::vector<std::string> child_arguments(const std::vector<std::string>& ours);

/// The rows of a result file of this program, as one round of a variant saw them.
std::map<std::string, Observation> observations(const nlohmann::json& result);

/// Runs the variants in the order A B, B A, A B, ... for `options.rounds` rounds, prints how the rows of each differ
/// from those of the first, and writes all rows and comparisons to one JSON file, if one is named. Returns the exit
/// status. `arguments` are those of this process, without its name.
int run_variants(const BenchOptions&, const std::vector<std::string>& arguments);

}  // namespace lamina::bench
