// MNIST's pair of files in the IDX format: images and labels.

#include <array>
#include <initializer_list>
#include <string>

#include "byte_source.h"
#include "lamina/data.h"
#include "lamina/error.h"
#include "lamina/new_file.h"
#include "sets.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;

// magic numbers: bytes on three axes, bytes on one axis
constexpr std::uint32_t images_magic = 0x00000803, labels_magic = 0x00000801;
constexpr std::uint32_t longest_side = 65535;
constexpr std::uint32_t most_images = 0x7FFFFFFF;  // the format's numbers have a sign

/// Reads the magic number and the count.
std::uint32_t read_head(ByteSource& source, std::uint32_t magic, const char* what) {
  const std::uint32_t found = source.read_number<std::uint32_t>("the magic number", std::endian::big);
  if (found != magic)
    source.fail("begins with the number " + std::to_string(found) + "; IDX files of " + what + " begin with " +
                std::to_string(magic));
  const std::uint32_t count = source.read_number<std::uint32_t>("the count", std::endian::big);
  if (count > most_images) source.fail("has the negative count -" + std::to_string(0U - count));
  return count;
}

int read_side(ByteSource& source, const char* what) {
  const std::uint32_t side = source.read_number<std::uint32_t>(what, std::endian::big);
  if (side == 0 || side > longest_side)
    source.fail("has " + std::to_string(side) + " " + what + "; give 1 to " + std::to_string(longest_side));
  return static_cast<int>(side);
}

void write_big_endian(NewFile& file, std::initializer_list<std::uint32_t> numbers) {
  std::vector<std::uint8_t> bytes;
  for (const std::uint32_t number : numbers)
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(number >> shift));
  file.write(std::as_bytes(std::span(bytes)));
}

std::array<std::string, 2> names(Part part) {
  const std::string head = part == Part::train ? "train" : "t10k";
  return {head + "-images-idx3-ubyte", head + "-labels-idx1-ubyte"};
}

}  // namespace

ImageSet read_mnist(const fs::path& images, const fs::path& labels, int classes) {
  if (classes < 1 || classes > 256)
    throw UsageError("read_mnist: classes are 1 to 256, and not " + std::to_string(classes));
  ImageSet set{.image = {}, .classes = classes, .pixels = {}, .labels = {}};
  ByteSource pixels(images);
  const std::uint32_t count = read_head(pixels, images_magic, "images");
  set.image.h = read_side(pixels, "rows");
  set.image.w = read_side(pixels, "columns");
  set.pixels = pixels.take(std::uint64_t{count} * static_cast<std::uint64_t>(set.image.image()), "pixels");
  pixels.finish();

  ByteSource classes_of(labels);
  const std::uint32_t label_count = read_head(classes_of, labels_magic, "labels");
  if (label_count != count)
    classes_of.fail("has " + std::to_string(label_count) + " labels, but " + images.string() + " has " +
                    std::to_string(count) + " images");
  set.labels = classes_of.take(count, "labels");
  classes_of.finish();
  if (const std::string wrong = wrong_label(set.labels, classes, "image"); !wrong.empty()) classes_of.fail(wrong);
  return set;
}

ImageSet read_mnist(const fs::path& folder, Part part) {
  std::array<fs::path, 2> paths;
  for (std::size_t i = 0; i < 2; ++i) {
    paths[i] = plain_or_gz(folder, names(part)[i]);
    if (paths[i].empty())
      throw FileError(folder.string() + ": has neither " + names(part)[i] + " nor the same file with .gz");
  }
  return read_mnist(paths[0], paths[1]);
}

void write_mnist(const fs::path& images, const fs::path& labels, const ImageSet& set) {
  check(set, "write_mnist");
  if (set.image.c != 1 || set.image.h > static_cast<int>(longest_side) ||
      set.image.w > static_cast<int>(longest_side)) {
    throw UsageError("write_mnist: images are 1 x 1 x h x w with sides of up to " + std::to_string(longest_side) +
                     ", and not " + to_string(set.image));
  }
  if (set.labels.size() > most_images) throw UsageError("write_mnist: a file has at most 2^31 - 1 images");
  const auto count = static_cast<std::uint32_t>(set.count());
  NewFile pixels(images);
  write_big_endian(
      pixels, {images_magic, count, static_cast<std::uint32_t>(set.image.h), static_cast<std::uint32_t>(set.image.w)});
  pixels.write(std::as_bytes(std::span(set.pixels)));
  NewFile classes_of(labels);
  write_big_endian(classes_of, {labels_magic, count});
  classes_of.write(std::as_bytes(std::span(set.labels)));
  pixels.keep();
  classes_of.keep();
}

void write_mnist(const fs::path& folder, Part part, const ImageSet& set) {
  write_mnist(folder / names(part)[0], folder / names(part)[1], set);
}

}  // namespace lamina
