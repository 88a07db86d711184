// Invalid files of data sets: each is a FileError that names the file, and no file makes the reader allocate much
// memory.

#include <random>

#include <sys/stat.h>

#include "bytes.h"
#include "lamina/data.h"
#include "tests/io/allocations.h"
#include "tests/io/files.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

struct HostileFile {
  const char* what;
  std::string bytes;
  std::string says;
};

/// Reads each file with `read`. Checks for a FileError that names the file and has the expected text.
void check_refused(void (*read)(const std::filesystem::path&), const std::vector<HostileFile>& files) {
  for (const HostileFile& hostile : files) {
    CAPTURE(hostile.what);
    const Folder folder;
    const std::filesystem::path path = folder / "hostile";
    write(path, hostile.bytes);
    largest_allocation_bytes = 0;
    CHECK_THROWS_AS(read(path), FileError);
    CHECK(largest_allocation_bytes < (std::size_t{3} << 20));
    CHECK_THROWS_WITH(read(path), ContainsSubstring(path.string()) && ContainsSubstring(hostile.says));
  }
}

/// A valid file that the file under test needs beside it.
class Companion {
 public:
  explicit Companion(const std::string& bytes) { write(path(), bytes); }
  std::filesystem::path path() const { return folder_ / "companion"; }

 private:
  Folder folder_;
};

void read_images(const std::filesystem::path& path) {
  static const Companion labels(mnist_labels());
  read_mnist(path, labels.path());
}

void read_labels(const std::filesystem::path& path) {
  static const Companion images(mnist_images());
  read_mnist(images.path(), path);
}

void read_cifar(const std::filesystem::path& path) { read_cifar10(std::vector{path}); }
void read_lists(const std::filesystem::path& path) { read_ids(path); }
void read_words_of(const std::filesystem::path& path) { read_text(path); }

std::string with(std::string bytes, std::size_t at, const std::string& others) {
  return bytes.replace(at, others.size(), others);
}

/// A gzip stream of `count` zeros, with the strongest compression.
std::string zeros(std::size_t count) { return gzip(std::string(count, '\0')); }

}  // namespace

TEST_CASE("damaged MNIST images are errors that name the file") {
  const std::string good = mnist_images(), head = good.substr(0, 16), packed = gzip(good);
  check_refused(read_images,
                {
                    {"empty", "", "magic number"},
                    {"three bytes", good.substr(0, 3), "magic number"},
                    {"labels", mnist_labels(), "2049"},
                    {"little-endian", with(good, 0, le32(0x803)), "2051"},
                    {"no count", good.substr(0, 6), "count"},
                    {"no rows", good.substr(0, 8), "rows"},
                    {"no columns", good.substr(0, 14), "columns"},
                    {"a pixel is missing", good.substr(0, 33), "17"},
                    {"a pixel too many", good + "x", "34"},
                    {"negative count", with(good, 4, be32(0x80000000)), "-2147483648"},
                    {"many images", with(good, 4, be32(0x7FFFFFFF)), "12884901882"},
                    {"no rows at all", with(good, 8, be32(0)), "rows"},
                    {"wide", with(good, 12, be32(65536)), "65536"},
                    {"all counts at their largest", be32(0x803) + be32(0x7FFFFFFF) + be32(65535) + be32(65535),
                     "bytes of pixels"},
                    {"gzip without data", "\x1F\x8B", "truncated"},
                    {"gzip of another method", std::string("\x1F\x8B\x07\0\0\0\0\0\0\0", 10), "damaged"},
                    {"gzip, truncated", packed.substr(0, packed.size() / 2), "truncated"},
                    {"gzip without its checksum", packed.substr(0, packed.size() - 8), "truncated"},
                    {"gzip with a wrong checksum", with(packed, packed.size() - 8, "\x55"), "damaged"},
                    {"gzip with a wrong length", with(packed, packed.size() - 4, "\x55"), "damaged"},
                    {"bytes after gzip", packed + "x", "after its gzip stream"},
                    {"two gzip streams", packed + packed, "after its gzip stream"},
                    {"gzip of one image too few", gzip(good.substr(0, 28)), "28"},
                    {"gzip with a pixel too many", gzip(good + "x"), "more"},
                    {"gzip with a wrong count", gzip(with(good, 4, be32(0x7FFFFFFF))), "at most"},
                    {"gzip that expands", zeros(std::size_t{64} << 20), "2051"},
                    {"gzip that really expands to 64 MiB",
                     gzip(be32(0x803) + be32(1024) + be32(256) + be32(256) + std::string(std::size_t{64} << 20, '\0')),
                     "at most"},
                });
}

TEST_CASE("damaged MNIST labels are errors that name the file") {
  const std::string good = mnist_labels();
  const std::vector<HostileFile> files = {
      {"images", mnist_images(), "2051"},
      {"one fewer than images", be32(0x801) + be32(2) + "\1\2", "has 3"},
      {"one is missing", good.substr(0, 10), "labels"},
      {"one too many", good + "\1", "more"},
      {"no class", with(good, 9, "\12"), "label 10"},
  };
  check_refused(read_labels, files);
}

TEST_CASE("damaged CIFAR-10 records are errors that name the file") {
  const std::string good = cifar_records();
  const std::vector<HostileFile> files = {
      {"empty", "", "0 bytes"},
      {"truncated", good.substr(0, good.size() - 1), "6145"},
      {"too long", good + "x", "6147"},
      {"a label of 10", with(good, 3073, "\12"), "record 1"},
      {"gzip that expands", zeros(std::size_t{8} << 20), "gzip"},
      {"gzip, truncated", gzip(good).substr(0, 100), "truncated"},
  };
  check_refused(read_cifar, files);
}

TEST_CASE("damaged lists of ids are errors that name the file") {
  const std::string good = id_lists();
  const std::vector<HostileFile> files = {
      {"empty", "", "magic number"},
      {"another magic number", with(good, 0, "LIDT"), "LIDS"},
      {"version 2", with(good, 4, le32(2)), "version 2"},
      {"no count", good.substr(0, 8), "count"},
      {"a count beyond the file", with(good, 8, le32(0xFFFFFFFF)), "lists"},
      {"a count one too high", with(good, 8, le32(4)), "lists"},
      {"a count one too low", with(good, 8, le32(2)), "more"},
      {"no vocabulary", with(good, 12, le32(0)), "vocabulary"},
      {"an id beyond the vocabulary", with(good, 12, le32(70000)), "list 2"},
      {"no classes", with(good, 16, le32(0)), "classes"},
      {"257 classes", with(good, 16, le32(257)), "classes"},
      {"a label that is no class", with(good, good.size() - 1, "\2"), "list 2"},
      {"a list longer than the file", with(good, 20, le16(0xFFFF)), "lists"},
      {"a label is missing", good.substr(0, good.size() - 1), "labels"},
      {"a byte too many", good + "x", "more"},
  };
  check_refused(read_lists, files);
}

TEST_CASE("a text that is not UTF-8, or expands to too many bytes, is an error that names the file") {
  check_refused(read_words_of,
                {{"invalid", "good until\xFF", "byte 10"}, {"expanding", zeros(std::size_t{8} << 20), "gzip"}});
}

TEST_CASE("a path that is no regular file is an error that names the path, and a pipe does not block") {
  const Folder folder;
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const auto& read : {read_images, read_labels, read_cifar, read_lists, read_words_of}) {
    CHECK_THROWS_WITH(read(folder / "missing"), ContainsSubstring("no such file"));
    CHECK_THROWS_WITH(read(folder.path()), ContainsSubstring("not a regular file"));
    CHECK_THROWS_WITH(read(folder / "pipe"), ContainsSubstring("not a regular file"));
  }
}

TEST_CASE("each of thousands of damaged files is read or refused by name, and does nothing else") {
  struct Kind {
    std::string good;
    void (*read)(const std::filesystem::path&);
  };
  const std::vector<Kind> kinds = {
      {mnist_images(), read_images},
      {gzip(mnist_images()), read_images},
      {mnist_labels(), read_labels},
      {cifar_records(), read_cifar},
      {gzip(cifar_records()), read_cifar},
      {id_lists(), read_lists},
      {gzip(id_lists()), read_lists},
      {"To b\xC3\xA9\r\n, \xE2\x82\xAC", read_words_of},
      {gzip("To be or not to be"), read_words_of},
  };
  std::vector<std::string> words;  // extreme numbers as bytes
  for (const std::uint32_t number : {0U, 1U, 0xFFFFU, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU})
    words.push_back(be32(number)), words.push_back(le32(number));
  std::mt19937 random(20);
  const Folder folder;
  const std::filesystem::path path = folder / "damaged";
  int refused = 0, accepted = 0;
  for (int turn = 0; turn < 4500; ++turn) {
    const Kind& kind = kinds[static_cast<std::size_t>(turn) % kinds.size()];
    const std::string bytes = damaged(kind.good, 40, words, random);  // the first 40 bytes have the counts
    std::filesystem::remove(path);  // some file systems wait for the disk when a file is truncated
    write(path, bytes);
    CAPTURE(turn);
    largest_allocation_bytes = 0;
    try {
      kind.read(path);
      ++accepted;
    } catch (const FileError& error) {
      ++refused;
      if (std::string(error.what()).find(folder.path().string()) == std::string::npos) FAIL_CHECK(error.what());
    }
    if (largest_allocation_bytes >= (std::size_t{3} << 20)) FAIL_CHECK(largest_allocation_bytes);
  }
  CHECK(refused > 2000);
  CHECK(accepted > 100);
}
