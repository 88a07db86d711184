#pragma once
// Labelled data sets in memory, and the files they come from: MNIST, CIFAR-10, lists of ids, text.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "lamina/api.h"
#include "lamina/shape.h"

namespace lamina {

/// Images as bytes, each with its class.
struct ImageSet {
  Shape image;                       ///< shape of one image: n is 1
  int classes = 10;                  ///< number of classes; labels are below it
  std::vector<std::uint8_t> pixels;  ///< pixels in the order n, c, h, w
  std::vector<std::uint8_t> labels;  ///< one label for each image
  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
};

/// Lists of ids, for instance of words, each list with its class.
struct IdSet {
  std::uint32_t vocabulary = 0;      ///< number of rows that an embedding needs; ids are below it
  int classes = 2;                   ///< number of classes; labels are below it
  std::vector<std::uint64_t> ends;   ///< list i is ids[ends[i - 1]] up to ids[ends[i]]; the first begins at 0
  std::vector<std::uint32_t> ids;    ///< all lists, one after another
  std::vector<std::uint8_t> labels;  ///< one label for each list
  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
  std::span<const std::uint32_t> list(std::int64_t i) const {
    const auto at = static_cast<std::size_t>(i);
    const std::uint64_t begin = at == 0 ? 0 : ends[at - 1];
    return std::span(ids).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(ends[at] - begin));
  }
  void append(std::span<const std::uint32_t> list, std::uint8_t label) {
    ids.insert(ids.end(), list.begin(), list.end());
    ends.push_back(ids.size());
    labels.push_back(label);
  }
};

/// A text as numbers: each character is an index into the sorted list of the characters that occur.
struct Text {
  std::vector<char32_t> alphabet;  ///< sorted by code point, without repeats
  std::vector<std::uint32_t> ids;  ///< one id for each character, below alphabet.size()
};

/// Which part of a data set.
enum class Part : std::uint8_t { train, test };

// ---- Files --------------------------------------------------------------------------------------------------------
//
// Every reader also takes a gzip file, recognised by its first bytes, whatever its name. An invalid file throws a
// FileError that names it and says what was found and what was expected. A file is invalid if it is missing, not a
// regular file, truncated or too long, or if it has a wrong magic number, impossible counts or labels, or a damaged
// gzip stream.
// Memory use is proportional to the file, whatever counts its header claims; a gzip stream may expand to 100 times its
// size, or to a MiB if that is more. Writers replace a file as a whole or not at all. They throw UsageError for an
// inconsistent set and FileError for errors of the disk.

/// Two files in the IDX format of MNIST (yann.lecun.com/exdb/mnist). All numbers are 32 bits, big-endian.
/// Images: 0x00000803, count, rows, columns, then a byte for each pixel, rows first. Labels: 0x00000801, count, then a
/// byte for each. Rows and columns are from 1 to 65535. The image's shape is {1, 1, rows, columns}.
LAMINA_API ImageSet read_mnist(const std::filesystem::path& images, const std::filesystem::path& labels,
                               int classes = 10);

/// Reads a folder with the usual file names: train-images-idx3-ubyte and train-labels-idx1-ubyte, or the same with
/// t10k- for the test set. Each name may end in .gz. If both forms exist, the one without .gz is read.
LAMINA_API ImageSet read_mnist(const std::filesystem::path& folder, Part);

/// Writes what read_mnist reads, uncompressed. The set must have one channel.
LAMINA_API void write_mnist(const std::filesystem::path& images, const std::filesystem::path& labels, const ImageSet&);
LAMINA_API void write_mnist(const std::filesystem::path& folder, Part, const ImageSet&);

/// Files of CIFAR-10's binary version (cs.toronto.edu/~kriz/cifar.html), in the given order. A file is records of 3073
/// bytes: the label (0 to 9), then 32 x 32 bytes of red, of green, of blue, rows first. The format has no count, so
/// truncation between two records cannot be detected.
LAMINA_API ImageSet read_cifar10(std::span<const std::filesystem::path> files);

/// Reads a folder: data_batch_1.bin to data_batch_5.bin (at least the first, without a gap), or test_batch.bin. Each
/// name may end in .gz.
LAMINA_API ImageSet read_cifar10(const std::filesystem::path& folder, Part);

/// Writes one file of records. The set must have images of 3 x 32 x 32 and 10 classes.
LAMINA_API void write_cifar10(const std::filesystem::path&, const ImageSet&);

/// Lists of ids in this library's file format. All numbers are little-endian:
///
///     bytes 0 to 3    "LIDS"
///     u32             version: 1
///     u32             count
///     u32             vocabulary: every id is below it; at least 1
///     u32             classes: every label is below it; 1 to 256
///     count times     u16 length, then length times u32 id
///     count times     u8 label
///
/// bench/imdb-to-ids makes one from Keras' imdb.npz.
LAMINA_API IdSet read_ids(const std::filesystem::path&);
LAMINA_API void write_ids(const std::filesystem::path&, const IdSet&);

/// A text as Keras' example lstm_text_generation reads it: UTF-8, decoded to code points, line ends changed to '\n',
/// letters to lower case. Only A to Z and the capitals of Latin-1 (U+00C0 to U+00DE without U+00D7) are changed; other
/// scripts are kept as they are. Throws FileError for invalid UTF-8, with the byte's position.
LAMINA_API Text read_text(const std::filesystem::path&);

/// The same for a text in memory. Throws UsageError for invalid UTF-8.
LAMINA_API Text make_text(std::string_view utf8);

}  // namespace lamina
