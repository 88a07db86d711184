// Safetensors files: PyTorch's files, round trips, exact decoding, rounding, and atomic replacement.

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <csignal>

#include "files.h"
#include "lamina/data.h"
#include "lamina/new_file.h"
#include "lamina/onnx.h"
#include "lamina/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"

using namespace lamina::test;

namespace {

namespace fs = std::filesystem;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The numbers in tiny.safetensors, by the formula of the script that made it.
std::vector<double> numbers(int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back((i - 3) / 8.0);
  return values;
}

HostTensor tensor(DType dtype, std::vector<std::int64_t> extents, std::vector<double> values) {
  return {.dtype = dtype, .extents = std::move(extents), .values = std::move(values)};
}

/// Writes `words` as one tensor of 16-bit elements, and reads the tensor's numbers.
std::vector<double> read_words(const Folder& folder, const std::string& dtype,
                               const std::vector<std::uint16_t>& words) {
  const std::string data(reinterpret_cast<const char*>(words.data()), 2 * words.size());
  const std::string shape = std::to_string(words.size()), bytes = std::to_string(data.size());
  const std::string entry = R"("shape":[)" + shape + R"(],"data_offsets":[0,)" + bytes + "]}}";
  write(folder / "words", safetensors(R"({"t":{"dtype":")" + dtype + "\"," + entry, data));
  return read_safetensors(folder / "words").at("t").values;
}

/// Writes a file with only these numbers, and reads its data as 16-bit words.
std::vector<std::uint16_t> written_words(const Folder& folder, DType dtype, const std::vector<double>& values) {
  write_safetensors(folder / "out", {{"t", tensor(dtype, {static_cast<std::int64_t>(values.size())}, values)}});
  const std::string bytes = contents(folder / "out");
  std::vector<std::uint16_t> words(values.size());
  std::memcpy(words.data(), bytes.data() + bytes.size() - 2 * words.size(), 2 * words.size());
  return words;
}

}  // namespace

TEST_CASE("a file written with PyTorch is read with the same numbers") {
  const TensorFile file = read_safetensors(test::data("tiny.safetensors"));
  CHECK(file.size() == 10);
  CHECK_FALSE(file.contains("bn1.num_batches_tracked"));
  CHECK_FALSE(file.contains("__metadata__"));
  CHECK(file.at("conv1.weight").dtype == DType::f32);
  CHECK(file.at("conv1.weight").extents == std::vector<std::int64_t>{2, 1, 3, 3});
  CHECK(file.at("conv1.weight").values == numbers(18));
  CHECK(file.at("conv1.bias").dtype == DType::f16);
  CHECK(file.at("conv1.bias").values == numbers(2));
  CHECK(file.at("bn1.running_var").values == std::vector<double>{0.375, 0.25});
  CHECK(file.at("fc.weight").dtype == DType::f64);
  CHECK(file.at("fc.weight").values == numbers(12));
  CHECK(file.at("fc.bias").dtype == DType::bf16);
  CHECK(file.at("fc.bias").values == numbers(3));
  CHECK(file.at("empty").extents == std::vector<std::int64_t>{0, 5});
  CHECK(file.at("empty").values.empty());
  CHECK(file.at("scalar").extents.empty());
  CHECK(file.at("scalar").values == std::vector<double>{2.5});
}

TEST_CASE("written tensors are read back unchanged") {
  const Folder folder;
  const TensorFile file = {
      {"f64", tensor(DType::f64, {2, 3}, {0.1, -1e300, 5e-324, kInfinity, -kInfinity, 0.0})},
      {"f32", tensor(DType::f32, {1, 3, 1, 1}, {0.1F, std::numeric_limits<float>::denorm_min(), -3.0e38F})},
      {"f16", tensor(DType::f16, {4}, {65504, -0x1p-24, 1.0009765625, -kInfinity})},
      {"bf16", tensor(DType::bf16, {2, 1}, {0x1p-133, -1.0078125})},
      {"a scalar", tensor(DType::f32, {}, {2})},
      {"nothing \"quoted\" \n \xC3\xA9", tensor(DType::f16, {3, 0, std::int64_t{1} << 62}, {})},
      {"long", tensor(DType::f32, {100, 101}, std::vector<double>(10100, 0.5))},
  };
  write_safetensors(folder / "file", file);
  const TensorFile back = read_safetensors(folder / "file");
  REQUIRE(back.size() == file.size());
  for (const auto& [name, host] : file) {
    INFO(name);
    CHECK(back.at(name).dtype == host.dtype);
    CHECK(back.at(name).extents == host.extents);
    CHECK(back.at(name).values == host.values);
  }
  CHECK(contents(folder / "file").substr(8, 1) == "{");
}

TEST_CASE("a written file without tensors is read back without tensors") {
  const Folder folder;
  write_safetensors(folder / "file", {});
  CHECK(read_safetensors(folder / "file").empty());
}

TEST_CASE("16-bit numbers are decoded by their definition") {
  const Folder folder;
  CHECK(read_words(folder, "F16", {0x0000, 0x0001, 0x03FF, 0x0400, 0x3C00, 0x3C01, 0x7BFF, 0x7C00, 0xC000}) ==
        std::vector<double>{0, 0x1p-24, 0x3FFp-24, 0x1p-14, 1, 1 + 0x1p-10, 65504, kInfinity, -2});
  CHECK(read_words(folder, "BF16", {0x0000, 0x0001, 0x007F, 0x0080, 0x3F80, 0x3F81, 0x7F7F, 0x7F80, 0xC000}) ==
        std::vector<double>{0, 0x1p-133, 0x7Fp-133, 0x1p-126, 1, 1 + 0x1p-7, 0xFFp120, kInfinity, -2});
  CHECK(std::signbit(read_words(folder, "F16", {0x8000})[0]));
  CHECK(std::isnan(read_words(folder, "F16", {0x7C01})[0]));
  CHECK(std::isnan(read_words(folder, "BF16", {0xFFFF})[0]));
}

TEST_CASE("every 16-bit number survives reading and writing") {
  const Folder folder;
  std::vector<std::uint16_t> words(65536);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint16_t>(i);
  for (const auto& [dtype, name] : {std::pair{DType::f16, "F16"}, std::pair{DType::bf16, "BF16"}}) {
    const std::vector<double> values = read_words(folder, name, words);
    const std::vector<std::uint16_t> back = written_words(folder, dtype, values);
    int different = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (dtype == DType::bf16 && !std::isnan(values[i]))
        REQUIRE(values[i] == std::bit_cast<float>(static_cast<std::uint32_t>(i << 16)));
      // A signalling NaN becomes a quiet NaN.
      different +=
          back[i] != words[i] && !(std::isnan(values[i]) && std::isnan(read_words(folder, name, {back[i]})[0]));
    }
    CHECK(different == 0);
  }
}

TEST_CASE("numbers are rounded to the nearest, ties to even, in one rounding") {
  const Folder folder;
  const double ulp = 0x1p-10;
  CHECK(written_words(folder, DType::f16,
                      {1 + ulp / 2, 1 + 1.5 * ulp, 1 + ulp / 2 + 0x1p-40, 1 + ulp / 2 - 0x1p-40, 2 - ulp / 4, 65519.99,
                       -65519.99, 0x1p-25, 0x1.8p-25, 0x1.8p-24, 0x3FF.8p-24, 1e-300}) ==
        std::vector<std::uint16_t>{0x3C00, 0x3C02, 0x3C01, 0x3C00, 0x4000, 0x7BFF, 0xFBFF, 0x0000, 0x0001, 0x0002,
                                   0x0400, 0x0000});
  CHECK(written_words(folder, DType::bf16, {1 + 0x1p-8, 1 + 0x1.8p-7, 1 + 0x1p-8 + 0x1p-50, 0x1p-134, -0x1.8p-134}) ==
        std::vector<std::uint16_t>{0x3F80, 0x3F82, 0x3F81, 0x0000, 0x8001});
  const std::vector<double> wide = {0.1, 1 + 0x1p-24, 1 + 0x1.8p-23, 1e-46, -1e-40, 0x1.fffffep127};
  write_safetensors(folder / "f32", {{"t", tensor(DType::f32, {6}, wide)}});
  const std::vector<double> narrow = read_safetensors(folder / "f32").at("t").values;
  for (std::size_t i = 0; i < wide.size(); ++i) CHECK(narrow[i] == static_cast<double>(static_cast<float>(wide[i])));
}

TEST_CASE("a number beyond the type is refused by name, not written as infinity") {
  const Folder folder;
  const auto refused = [&](DType dtype, double value) {
    CHECK_THROWS_MATCHES(write_safetensors(folder / "file", {{"fc.bias", tensor(dtype, {1}, {value})}}), FileError,
                         Says("file", "'fc.bias'", "out of range"));
  };
  refused(DType::f16, 65520);
  refused(DType::f16, -1e10);
  refused(DType::bf16, 0x1.ffp127);
  refused(DType::f32, 0x1.ffffffp127);
  refused(DType::f32, -1e300);
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("invalid tensors are refused by name") {
  const Folder folder;
  const auto refused = [&](const std::string& name, const HostTensor& host, const std::string& says) {
    INFO(says);
    CHECK_THROWS_MATCHES(write_safetensors(folder / "file", {{name, host}}), FileError, Says(says));
  };
  refused("w", tensor(DType::f32, {2, 2}, {1, 2, 3}), "'w' has 3 values");
  refused("w", tensor(DType::f32, {}, {}), "'w' has 0 values");
  refused("w", tensor(DType::f32, {0}, {1}), "'w' has 1 values");
  refused("w", tensor(DType::f32, {-1}, {1}), "'w' has the extent -1");
  refused("w", tensor(DType::f32, {0, -1}, {}), "'w' has the extent -1");
  refused("w", tensor(DType::f32, {std::int64_t{1} << 62, 4, 1}, {1}), "'w' has 1 values");
  refused("w", tensor(DType::u64, {1}, {1}), "'w' is not of a floating point type");
  refused("__metadata__", tensor(DType::f32, {1}, {1}), "__metadata__");
  refused("bad \xFF name", tensor(DType::f32, {1}, {1}), "UTF-8");
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("a failed write leaves the old file and no other file") {
  const Folder folder;
  write_safetensors(folder / "file", {{"old", tensor(DType::f32, {1}, {1})}});
  const std::string before = contents(folder / "file");

  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
  rlimit small = limit;
  small.rlim_cur = 4096;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string message = said_by<FileError>([&] {
    write_safetensors(folder / "file", {{"new", tensor(DType::f64, {10000}, std::vector<double>(10000))}});
  });
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);

  CHECK_THAT(message, ContainsSubstring((folder / "file").string()) && ContainsSubstring("could not be written"));
  CHECK(contents(folder / "file") == before);
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("the file of a killed writer is removed by the next writer, and the file of a living writer is not") {
  const Folder folder;
  const auto files = [&] { return std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()); };
  const pid_t child = fork();
  if (child == 0) {
    NewFile left(folder / "file");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(files() == 1);
  NewFile one(folder / "file");
  CHECK(files() == 1);
  NewFile other(folder / "file");
  CHECK(files() == 2);
  other.keep();
  one.write(std::as_bytes(std::span("one", 3)));
  one.keep();
  CHECK(files() == 1);
  CHECK(contents(folder / "file") == "one");
}

TEST_CASE("a writer removes files that killed writers left, but no other file with a similar name") {
  const Folder folder;
  const char* others[] = {"file.new-plan", "file.new-",      "file.new-12",     "file.new-12-",
                          "file.new--3",   "file.new-1-2-3", "file.new-1-2.bak"};
  for (const char* name : others) write(folder / name, "kept");
  write(folder / "file.new-12-0", "left");
  write_safetensors(folder / "file", {});
  for (const char* name : others) {
    CAPTURE(name);
    CHECK(fs::exists(folder / name));
  }
  CHECK_FALSE(fs::exists(folder / "file.new-12-0"));
}

TEST_CASE("a file that cannot be replaced is named") {
  const Folder folder;
  fs::create_directory(folder / "directory");
  CHECK_THROWS_WITH(write_safetensors(folder / "directory", {}), ContainsSubstring("directory: not a regular file"));
  CHECK_THROWS_MATCHES(write_safetensors(folder / "no such folder" / "file", {}), FileError,
                       Says("cannot be written", "make the folder " + folder.file("no such folder") + " first"));
  CHECK_THROWS_AS(write_safetensors("/dev/null", {}), FileError);
  CHECK_THROWS_AS(write_safetensors("", {}), FileError);
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("a written link stays a link, and permissions are kept") {
  const Folder folder;
  write(folder / "real", "old");
  REQUIRE(::chmod((folder / "real").c_str(), 0600) == 0);
  fs::create_symlink("real", folder / "link");
  write_safetensors(folder / "link", {{"t", tensor(DType::f32, {1}, {1})}});
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_safetensors(folder / "real").size() == 1);
  CHECK(fs::status(folder / "real").permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("a page or pointer that a failed download left in place of a file is named") {
  const Folder folder;
  const auto says = [&](const char* contents, const char* why) {
    write(folder / "file", contents);
    const auto named = ContainsSubstring(folder.file("file") + ": " + why);
    CHECK_THROWS_WITH(read_safetensors(folder / "file"), named);
    CHECK_THROWS_WITH(read_onnx(folder / "file"), named);
    const std::filesystem::path files[] = {folder / "file"};
    CHECK_THROWS_WITH(read_cifar10(files), named);
    CHECK_THROWS_WITH(read_mnist(folder / "file", folder / "file"), named);
  };
  says("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 102530333\n",
       "a Git LFS pointer in place of the file of 102530333 bytes: git lfs pull fetches the file");
  says("version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer in place of the file: ");
  says("\n<!DOCTYPE html>\n<html>", "a page of HTML or XML in place of the file");
  says("\xEF\xBB\xBF<HTML lang=en>", "a page of HTML or XML in place of the file");
  says("<?xml version='1.0'?><Error>", "a page of HTML or XML in place of the file");
}
