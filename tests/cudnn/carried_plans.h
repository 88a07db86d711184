#pragma once
// Loads and runs plans that were made on another machine. The contents of their tensors do not matter.

#include <filesystem>
#include <string>
#include <vector>

#include "lib/backends/cudnn/library/session.h"

namespace lamina::test {

/// The key in a plan's file.
std::string key_in(const std::string& contents);

/// One line for each plan in a folder, in the order of names: "0123456789abcdef.plan, engine 67 2=5: yes", or "no" and
/// the reason. If the device fails for good, the last line says so.
std::vector<std::string> run_carried_plans(cudnn::Session&, const std::filesystem::path& folder);

}  // namespace lamina::test
