#pragma once
// A folder of serialised plans: a file for each key, written whole or not at all.

#include <filesystem>
#include <optional>
#include <string>

namespace lamina::cudnn::graph {

class KeptPlans {
 public:
  /// Makes the folder if it is missing. If `folder` is empty, no plan is kept. Throws FileError if the folder cannot be
  /// made, or if something else has its name.
  explicit KeptPlans(std::filesystem::path folder);

  /// The plan of the key, if there is one. `complaint` names a file that is damaged or of another key.
  std::optional<std::string> find(const std::string& key, std::string& complaint) const;

  /// Keeps a plan, and replaces a plan of the same key. If the file cannot be written, `complaint` says why.
  void keep(const std::string& key, const std::string& plan, std::string& complaint) const;

  std::filesystem::path file(const std::string& key) const;
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

/// The properties that a plan depends on, from a text that cuDNN took: "deviceVer 900, driverVer 13000, ...".
std::string plan_properties(const std::string& device_json);

}  // namespace lamina::cudnn::graph
