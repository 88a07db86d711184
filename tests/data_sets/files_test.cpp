// Files of data sets: plain and compressed files are read, and written files are read back.

#include "tests/io/files.h"
#include "bytes.h"
#include "lamina/data.h"
#include "tests/support/catch.h"

using namespace lamina::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::uint8_t> steps_of_14() {
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < 18; ++i) bytes.push_back(static_cast<std::uint8_t>(14 * i));
  return bytes;
}

std::vector<std::uint32_t> vector(std::span<const std::uint32_t> ids) { return {ids.begin(), ids.end()}; }

/// An image set whose pixels and labels have no simple pattern.
ImageSet some_images(const Shape& image, int count) {
  ImageSet set{.image = image, .classes = 10, .pixels = {}, .labels = {}};
  for (std::int64_t i = 0; i < count * image.image(); ++i)
    set.pixels.push_back(static_cast<std::uint8_t>((i * 7919 + 13) >> 3));
  for (int i = 0; i < count; ++i) set.labels.push_back(static_cast<std::uint8_t>(i * 7 % 10));
  return set;
}

}  // namespace

TEST_CASE("MNIST's images and labels are read in the order of the files") {
  const Folder folder;
  const bool packed = GENERATE(false, true);
  write(folder / "images", packed ? gzip(mnist_images()) : mnist_images());
  write(folder / "labels", packed ? gzip(mnist_labels()) : mnist_labels());
  const ImageSet set = read_mnist(folder / "images", folder / "labels");
  CHECK(set.image == Shape{1, 1, 2, 3});
  CHECK(set.classes == 10);
  CHECK(set.count() == 3);
  CHECK(set.pixels == steps_of_14());
  CHECK(set.labels == std::vector<std::uint8_t>{7, 0, 9});
}

TEST_CASE("MNIST's folder is read by the files' usual names, and a plain file is preferred to a compressed one") {
  const Folder folder;
  write(folder / "train-images-idx3-ubyte.gz", gzip(mnist_images()));
  write(folder / "train-labels-idx1-ubyte.gz", "not read: there is a plain file");
  write(folder / "train-labels-idx1-ubyte", mnist_labels());
  CHECK(read_mnist(folder.path(), Part::train).pixels == steps_of_14());
  CHECK_THROWS_MATCHES(read_mnist(folder.path(), Part::test), FileError, Says("t10k-images-idx3-ubyte"));
}

TEST_CASE("an image set with images of any size is written as MNIST and read back") {
  const Folder folder;
  const ImageSet set = some_images({1, 1, 5, 300}, 11);
  write_mnist(folder.path(), Part::test, set);
  const ImageSet back = read_mnist(folder.path(), Part::test);
  CHECK(back.image == set.image);
  CHECK(back.pixels == set.pixels);
  CHECK(back.labels == set.labels);
  CHECK(fs::file_size(folder / "t10k-images-idx3-ubyte") == 16 + 11 * 5 * 300);
  CHECK_THROWS_AS(write_mnist(folder.path(), Part::test, some_images({1, 3, 5, 5}, 1)), UsageError);
}

TEST_CASE("CIFAR-10's records are a label and three planes, and the records of several files are concatenated") {
  const Folder folder;
  const bool packed = GENERATE(false, true);
  const std::string ending = packed ? ".gz" : "";
  const std::string records = cifar_records(), first = records.substr(0, 3073), second = records.substr(3073);
  write(folder / ("data_batch_1.bin" + ending), packed ? gzip(first) : first);
  write(folder / ("data_batch_2.bin" + ending), packed ? gzip(second) : second);
  const ImageSet set = read_cifar10(folder.path(), Part::train);
  CHECK(set.image == Shape{1, 3, 32, 32});
  CHECK(set.labels == std::vector<std::uint8_t>{3, 9});
  REQUIRE(set.pixels.size() == 2 * 3072);
  CHECK(set.pixels[0] == 0);
  CHECK(set.pixels[1024 + 33] == ((1024 + 33) & 0xFF));
  CHECK(set.pixels[3071] == 0xFF);
  CHECK(set.pixels[3072] == 200);
}

TEST_CASE("a gap in the numbers of CIFAR-10's training batches is refused, and the test set is one file") {
  const Folder folder;
  const ImageSet set = some_images({1, 3, 32, 32}, 4);
  write_cifar10(folder / "data_batch_1.bin", set);
  write_cifar10(folder / "test_batch.bin", set);
  CHECK(read_cifar10(folder.path(), Part::test).pixels == set.pixels);
  CHECK(read_cifar10(folder.path(), Part::test).labels == set.labels);
  write_cifar10(folder / "data_batch_3.bin", set);
  CHECK_THROWS_WITH(read_cifar10(folder.path(), Part::train), ContainsSubstring("data_batch_2.bin"));
  CHECK_THROWS_AS(write_cifar10(folder / "x", some_images({1, 1, 32, 32}, 1)), UsageError);
}

TEST_CASE("lists of ids are read and written byte by byte as documented") {
  const Folder folder;
  write(folder / "lists", id_lists());
  const IdSet set = read_ids(folder / "lists");
  CHECK(set.vocabulary == 70001);
  CHECK(set.classes == 2);
  CHECK(set.labels == std::vector<std::uint8_t>{1, 0, 1});
  REQUIRE(set.count() == 3);
  CHECK(vector(set.list(0)) == std::vector<std::uint32_t>{1, 5});
  CHECK(set.list(1).empty());
  CHECK(vector(set.list(2)) == std::vector<std::uint32_t>{70000, 2, 3});
  write_ids(folder / "again", set);
  CHECK(contents(folder / "again") == id_lists());
}

TEST_CASE("a file of ids keeps lists of up to 65535 ids, and refuses longer lists") {
  const Folder folder;
  IdSet set;
  set.vocabulary = 9;
  set.append(std::vector<std::uint32_t>(65535, 8), 1);
  set.append(std::vector<std::uint32_t>{4}, 0);
  write_ids(folder / "lists", set);
  CHECK(read_ids(folder / "lists").ids == set.ids);
  CHECK(read_ids(folder / "lists").ends == set.ends);
  set.append(std::vector<std::uint32_t>(65536, 8), 1);
  CHECK_THROWS_WITH(write_ids(folder / "lists", set), ContainsSubstring("list 2"));
  CHECK(read_ids(folder / "lists").count() == 2);  // the old file is unchanged
}

TEST_CASE("a text is read as lower case letters, and as indices in the sorted list of its characters") {
  const Text text = make_text("Ba\r\nB \u00C4\u00E4\u00D7\u03A9\r!");
  CHECK(text.alphabet == std::vector<char32_t>{U'\n', U' ', U'!', U'a', U'b', U'\u00D7', U'\u00E4', U'\u03A9'});
  CHECK(text.ids == std::vector<std::uint32_t>{4, 3, 0, 4, 1, 6, 6, 5, 7, 0, 2});
}

TEST_CASE("a text is read from a plain or compressed file") {
  const Folder folder;
  write(folder / "text", "To be");
  write(folder / "packed", gzip("To be"));
  CHECK(read_text(folder / "text").ids == make_text("to be").ids);
  CHECK(read_text(folder / "packed").alphabet == make_text("to be").alphabet);
  CHECK(make_text("").ids.empty());
}

TEST_CASE("every kind of invalid UTF-8 is refused with its position") {
  for (const char* bytes :
       {"ab\x80", "ab\xC0\x80", "ab\xC1\xBF", "ab\xC3", "ab\xC3z", "ab\xE0\x80\x80", "ab\xED\xA0\x80", "ab\xE2\x82",
        "ab\xF0\x80\x80\x80", "ab\xF4\x90\x80\x80", "ab\xF5\x80\x80\x80", "ab\xFF"}) {
    CAPTURE(bytes + 2);
    CHECK_THROWS_MATCHES(make_text(bytes), UsageError, Says("byte 2"));
  }
  CHECK(make_text("\xF0\x9F\x98\x80\xEF\xBF\xBF\xE0\xA0\x80\xF4\x8F\xBF\xBF").alphabet ==
        std::vector<char32_t>{0x800, 0xFFFF, 0x1F600, 0x10FFFF});
}
