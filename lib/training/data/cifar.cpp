// CIFAR-10's binary version: records, each a label and an image.

#include <string>

#include "byte_source.h"
#include "lamina/data.h"
#include "lamina/error.h"
#include "lamina/new_file.h"
#include "sets.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;

constexpr Shape image_shape{1, 3, 32, 32};
constexpr int class_count = 10;
constexpr std::size_t image_bytes = 3 * 32 * 32, record_bytes = 1 + image_bytes;
constexpr int most_batches = 5;

void read_records(const fs::path& path, ImageSet& set) {
  ByteSource source(path);
  const std::vector<std::uint8_t> bytes = source.rest();
  const std::size_t count = bytes.size() / record_bytes;
  if (bytes.empty() || bytes.size() % record_bytes != 0)
    source.fail("has " + std::to_string(bytes.size()) + " bytes; it should have one or more whole records of " +
                std::to_string(record_bytes));
  for (std::size_t i = 0; i < count; ++i) {
    const std::span record = std::span(bytes).subspan(i * record_bytes, record_bytes);
    set.labels.push_back(record[0]);
    set.pixels.insert(set.pixels.end(), record.begin() + 1, record.end());
  }
  const auto labels = std::span(set.labels).last(count);
  if (const std::string wrong = wrong_label(labels, class_count, "record"); !wrong.empty()) source.fail(wrong);
}

}  // namespace

ImageSet read_cifar10(std::span<const fs::path> files) {
  if (files.empty()) throw UsageError("read_cifar10: no file is given");
  ImageSet set{.image = image_shape, .classes = class_count, .pixels = {}, .labels = {}};
  for (const fs::path& path : files) read_records(path, set);
  return set;
}

ImageSet read_cifar10(const fs::path& folder, Part part) {
  const auto name = [&](int batch) {
    return part == Part::test ? std::string("test_batch.bin") : "data_batch_" + std::to_string(batch) + ".bin";
  };
  std::vector<fs::path> files;
  std::string missing;
  for (int batch = 1; batch <= (part == Part::test ? 1 : most_batches); ++batch) {
    const fs::path path = plain_or_gz(folder, name(batch));
    if (path.empty()) {
      if (missing.empty()) missing = name(batch);
    } else if (!missing.empty()) {
      throw FileError(folder.string() + ": has " + name(batch) + ", but not " + missing);
    } else {
      files.push_back(path);
    }
  }
  if (files.empty()) throw FileError(folder.string() + ": has neither " + name(1) + " nor the same file with .gz");
  return read_cifar10(files);
}

void write_cifar10(const fs::path& path, const ImageSet& set) {
  check(set, "write_cifar10");
  if (set.image != image_shape || set.classes > class_count)
    throw UsageError("write_cifar10: images are " + to_string(image_shape) + " of at most 10 classes, and not " +
                     to_string(set.image) + " of " + std::to_string(set.classes));
  NewFile file(path);
  for (std::size_t i = 0; i < set.labels.size(); ++i) {
    file.write(std::as_bytes(std::span(set.labels).subspan(i, 1)));
    file.write(std::as_bytes(std::span(set.pixels).subspan(i * image_bytes, image_bytes)));
  }
  file.keep();
}

}  // namespace lamina
