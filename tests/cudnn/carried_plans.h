#pragma once
// Plans that another machine made: each is loaded and run, with whatever is in the memory of its tensors.

#include <filesystem>
#include <string>
#include <vector>

#include "lib/backends/cudnn/library/session.h"

namespace lamina::test {

/// The key that a file of a plan has.
std::string key_in(const std::string& contents);

/// A line for each file of a folder of plans, by name: "0123456789abcdef.plan, engine 67 2=5: yes", or "no" and why.
/// If the device fails for good, the last line says so.
std::vector<std::string> run_carried_plans(cudnn::Session&, const std::filesystem::path& folder);

}  // namespace lamina::test
