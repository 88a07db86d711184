// Checks of every data set, however it was made.

#include "sets.h"

#include <algorithm>

#include "lamina/error.h"

namespace lamina {
namespace {

void check_labels(std::span<const std::uint8_t> labels, int classes, const std::string& what) {
  if (classes < 1 || classes > 256)
    throw UsageError(what + ": classes are 1 to 256, and not " + std::to_string(classes));
  if (const std::string wrong = wrong_label(labels, classes, "sample"); !wrong.empty())
    throw UsageError(what + ": " + wrong);
}

}  // namespace

std::string wrong_label(std::span<const std::uint8_t> labels, int classes, const char* sample) {
  const auto wrong = std::ranges::find_if(labels, [&](std::uint8_t label) { return label >= classes; });
  if (wrong == labels.end()) return {};
  return std::string(sample) + " " + std::to_string(wrong - labels.begin()) + " has the label " +
         std::to_string(*wrong) + ", which is not below " + std::to_string(classes);
}

void check(const ImageSet& set, const std::string& what) {
  const Shape& image = set.image;
  if (image.n != 1 || image.c < 1 || image.h < 1 || image.w < 1)
    throw UsageError(what + ": an image's shape is 1 x c x h x w, and not " + to_string(image));
  const auto pixels = static_cast<std::uint64_t>(image.image());
  if (set.pixels.size() % pixels != 0 || set.pixels.size() / pixels != set.labels.size())
    throw UsageError(what + ": " + std::to_string(set.pixels.size()) + " bytes are not " +
                     std::to_string(set.labels.size()) + " images of " + to_string(image) + ", one for each label");
  check_labels(set.labels, set.classes, what);
}

void check(const IdSet& set, const std::string& what) {
  if (set.ends.size() != set.labels.size())
    throw UsageError(what + ": " + std::to_string(set.ends.size()) + " lists have " +
                     std::to_string(set.labels.size()) + " labels");
  if (!std::is_sorted(set.ends.begin(), set.ends.end()) || (set.ends.empty() ? 0 : set.ends.back()) != set.ids.size())
    throw UsageError(what + ": the ends of the lists must rise, up to the number of ids");
  const auto wrong =
      std::find_if(set.ids.begin(), set.ids.end(), [&](std::uint32_t id) { return id >= set.vocabulary; });
  if (wrong != set.ids.end())
    throw UsageError(what + ": the id " + std::to_string(*wrong) + " is not below the vocabulary, " +
                     std::to_string(set.vocabulary));
  check_labels(set.labels, set.classes, what);
}

std::filesystem::path plain_or_gz(const std::filesystem::path& folder, const std::string& name) {
  for (const char* ending : {"", ".gz"}) {
    const std::filesystem::path path = folder / (name + ending);
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return {};
}

}  // namespace lamina
