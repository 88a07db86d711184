#pragma once
// Labelled data sets in memory, and the files they come from: MNIST, CIFAR-10, lists of ids, text. From sets to
// batches: shuffling, padding, augmentation, prepared on threads while the device computes.
//
//     auto source = lamina::image_source(lamina::read_cifar10("cifar-10-batches-bin", lamina::Part::train),
//                                        {.shift = 0.1, .flip = true});
//     lamina::Loader loader(*source, {.batch = 32, .drop_last = true, .seed = 7, .threads = 2});
//     for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
//       loader.start(epoch);
//       while (const lamina::Batch* batch = loader.next()) ...
//     }
//
// A batch depends only on the source, the options, the epoch and its number. A run that restarts at (epoch, number)
// therefore sees the same values, with any number of threads.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lamina/api.h"
#include "lamina/shape.h"

namespace lamina {

/// Images as bytes, and the class of each image.
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
  std::vector<std::uint64_t> ends;   ///< list i is ids[ends[i - 1]] to ids[ends[i] - 1]; list 0 begins at 0
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
/// t10k- for the test set. Each name may end in .gz. If both forms exist, the file without .gz is read.
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

/// Writes one file of records. The set must have images of 3 x 32 x 32 and at most 10 classes.
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

// ---- Batches ------------------------------------------------------------------------------------------------------

/// Some samples, ready for upload(): host memory, dense n, c, h, w.
struct Batch {
  std::int64_t number = 0;    ///< number of the batch in its epoch, from 0
  Shape shape;                ///< shape of x; n is the number of samples in this batch
  std::vector<float> x;       ///< elements of the samples; ids are exact, because they are below 2^24
  std::vector<float> labels;  ///< the class of each sample, a whole number
};

/// What a random augmentation may depend on, besides the index of the sample.
struct Moment {
  std::uint64_t seed = 0, epoch = 0;
};

/// Numbered samples of one shape. Derive from it to use your own data.
class LAMINA_API Source {
 public:
  virtual ~Source() = default;
  virtual std::int64_t count() const = 0;
  virtual Shape shape() const = 0;  ///< shape of one sample: n is 1
  virtual int classes() const = 0;  ///< number of classes; labels are below it

  /// Writes all of x, shape().count() elements in the order c, h, w, and the label. The result depends on the arguments
  /// alone. Several threads call it at once. Its exceptions are thrown by Loader::next().
  virtual void write(std::int64_t sample, Moment, std::span<float> x, float& label) const = 0;
};

struct ImageOptions {
  double scale = 1.0 / 255;  ///< factor for a byte
  /// Largest shift, as a share of height and width, 0 to 1. A shift is uniform between minus and plus that share, then
  /// rounded to whole rows and columns; edge pixels are repeated. Keras' example for CIFAR-10 has 0.1: 32 rows are
  /// shifted by -2 to 2 with probability 0.156 each, by -3 or 3 with 0.109 each.
  double shift = 0;
  bool flip = false;  ///< whether left and right are swapped with probability 1/2, after the shift
};

/// Images as f32. Throws UsageError for a set that is empty or inconsistent, and options out of range.
LAMINA_API std::unique_ptr<Source> image_source(ImageSet, ImageOptions = {});

/// Lists of ids, each padded to `length` as Keras' pad_sequences does by default: it keeps the last ids, and a shorter
/// list gets zeros in front. The shape is {1, 1, length, 1}. Throws UsageError for a set that is empty or inconsistent,
/// a vocabulary above 2^24, a length below 1.
LAMINA_API std::unique_ptr<Source> id_source(IdSet, int length);

struct TextOptions {
  int window = 40;
  int step = 3;  ///< characters from the start of a window to the start of the next
  /// false: x is the ids, of shape {1, 1, window, 1}. true: x is one-hot, of shape {1, characters, window, 1}.
  bool one_hot = false;
};

/// Windows of a text; the label is the character that follows. The number of windows is ceil((length - window) / step).
/// Throws UsageError for a text without a window, or a window or step below 1.
LAMINA_API std::unique_ptr<Source> text_source(Text, TextOptions = {});

/// The numbers 0 to count - 1 in an order that depends on seed and epoch alone: the Fisher-Yates shuffle with words of
/// Philox. Throws UsageError unless `count` is from 0 to 2^32 - 1.
LAMINA_API std::vector<std::uint32_t> shuffled(std::int64_t count, std::uint64_t seed, std::uint64_t epoch);

struct LoaderOptions {
  int batch = 32;
  bool shuffle = true;     ///< whether every epoch has a new order; false: the source's order
  bool drop_last = false;  ///< whether to drop the last batch if it is not full
  std::uint64_t seed = 0;
  int threads = 1;  ///< threads that prepare batches; 0: next() prepares them in the caller's thread
  int ahead = 3;    ///< most batches that are ready before they are requested; at least 1
  /// Of every batch, this loader gives part `rank` of `ranks` equal parts of the rows. A last batch that is not full
  /// has all its rows in the first parts, so the last parts may have none.
  int rank = 0, ranks = 1;
};

/// Gives the batches of an epoch in order, and prepares the next batches meanwhile. For one calling thread.
/// Memory: ahead + 1 batches, reused; without threads one batch.
class LAMINA_API Loader {
 public:
  /// The source must outlive the loader. Throws UsageError for options out of range, a source without samples, an epoch
  /// without batches.
  Loader(const Source&, LoaderOptions);
  ~Loader();                       ///< waits for samples in progress, not for their batches
  Loader(const Loader&) = delete;  // threads hold its address
  Loader& operator=(const Loader&) = delete;

  std::int64_t batches() const;  ///< number of batches in an epoch
  std::int64_t samples() const;  ///< number of samples in an epoch, without those that drop_last drops

  /// Begins an epoch at batch `first`; an unfinished epoch is abandoned. Throws UsageError unless
  /// 0 <= first <= batches().
  void start(std::uint64_t epoch, std::int64_t first = 0);

  /// The next batch, or null at the end of the epoch. Valid until the next call of any member. Waits until it is ready.
  /// Throws what the source threw while the batch was prepared, and again at each further call until start(). Throws
  /// UsageError before the first start().
  const Batch* next();

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace lamina
