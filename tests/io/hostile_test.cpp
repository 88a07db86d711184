// Invalid safetensors files: each is a FileError that names file and tensor, and no file makes the reader allocate much
// more than the file's size.

#include <sys/stat.h>
#include <unistd.h>

#include <random>

#include "allocations.h"
#include "files.h"
#include "lamina/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"

using namespace lamina::test;

namespace {

/// The header of one tensor "w" with these three fields.
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"w":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

/// The header of F32 vectors "a", "b", ... with the given offsets.
std::string vectors(const std::vector<std::pair<int, int>>& offsets) {
  std::string header = "{";
  for (std::size_t i = 0; i < offsets.size(); ++i)
    header += (i == 0 ? "\"" : ",\"") + std::string(1, static_cast<char>('a' + i)) + R"(":{"dtype":"F32","shape":[)" +
              std::to_string((offsets[i].second - offsets[i].first) / 4) + R"(],"data_offsets":[)" +
              std::to_string(offsets[i].first) + "," + std::to_string(offsets[i].second) + "]}";
  return header + "}";
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

struct Hostile {
  const char* what;
  std::string bytes;
  std::string says;
};

std::vector<Hostile> hostile_files() {
  const std::string four(4, '\0'), eight(8, '\0');
  const auto w = [&](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return safetensors(one(dtype, shape, offsets), four);
  };
  const std::string f32 = R"("F32")";
  return {
      {"empty", "", "too short"},
      {"seven bytes", "1234567", "too short"},
      {"no header", length_bytes(0), "does not begin with '{'"},
      {"header beyond the file", length_bytes(100) + "{}", "does not fit"},
      {"header of 2^64 - 1 bytes", length_bytes(~std::uint64_t{0}) + "{}", "does not fit"},
      {"header of 2^63 bytes", length_bytes(std::uint64_t{1} << 63) + "{}", "does not fit"},
      {"space before the header", safetensors(" {}", ""), "does not begin with '{'"},
      {"byte order mark", safetensors("\xEF\xBB\xBF{}", ""), "does not begin with '{'"},
      {"line break after the header", safetensors("{}\n", ""), "does not end with '}' and spaces"},
      {"only spaces after a brace", safetensors("{   ", ""), "does not end"},
      {"array", safetensors("[]", ""), "does not begin with '{'"},
      {"not JSON", safetensors("{w}", ""), "not JSON at its byte 2"},
      {"two documents", safetensors("{}{}", ""), "not JSON"},
      {"comment", safetensors("{/**/}", ""), "not JSON"},
      {"comma at the end", safetensors(one(f32, "[1]", "[0,4],"), four), "'w'"},
      {"cut in a string", safetensors("{\"w}", ""), "not JSON"},
      {"zero byte in a name", safetensors(std::string("{\"w\0\":{}}", 9), ""), "not JSON"},
      {"invalid UTF-8 in a name", safetensors("{\"w\xFF\":{}}", ""), "not JSON"},
      {"surrogate half in a name", safetensors("{\"\xED\xA0\x80\":{}}", ""), "not JSON"},
      {"half an escape in a name", safetensors(R"({"\ud800":{}})", ""), "not JSON"},
      {"deeply nested arrays", safetensors("{\"w\":" + repeated("[", 100000) + "}", ""), "'w' should have an object"},
      {"deeply nested objects", safetensors(repeated("{\"w\":", 100000) + "}", ""), "'w' has the unknown field 'w'"},
      {"nested shape", w(f32, repeated("[", 1000) + repeated("]", 1000), "[0,4]"), "'w' should have whole numbers"},
      {"nested metadata", safetensors(R"({"__metadata__":{"a":{}}})", ""), "strings only"},
      {"metadata with a number", safetensors(R"({"__metadata__":{"a":1}})", ""), "strings only"},
      {"metadata with a key twice", safetensors(R"({"__metadata__":{"a":"","a":""}})", ""), "'a' twice"},
      {"metadata twice", safetensors(R"({"__metadata__":{},"__metadata__":{}})", ""), "'__metadata__' twice"},
      {"metadata that is text", safetensors(R"({"__metadata__":"a"})", ""), "'__metadata__' should have an object"},
      {"tensor that is null", safetensors(R"({"w":null})", ""), "'w' should have an object"},
      {"tensor that is a number", safetensors(R"({"w":1})", ""), "'w' should have an object"},
      {"tensor without fields", safetensors(R"({"w":{}})", ""), "'w' has no dtype"},
      {"no shape", safetensors(R"({"w":{"dtype":"F32","data_offsets":[0,4]}})", four), "'w' has no shape"},
      {"no offsets", safetensors(R"({"w":{"dtype":"F32","shape":[1]}})", four), "'w' has no data_offsets"},
      {"unknown field", safetensors(R"({"w":{"stride":[1]}})", four), "'w' has the unknown field 'stride'"},
      {"field twice", w(R"("F32","dtype":"F32")", "[1]", "[0,4]"), "'w' has 'dtype' twice"},
      {"tensor twice", safetensors(R"({"w":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"w":{}})", ""),
       "'w' twice"},
      {"dtype that is a number", w("32", "[1]", "[0,4]"), "'w' should have a string for dtype"},
      {"unknown dtype", w(R"("F8_E4M3")", "[4]", "[0,4]"), "'w' has the unknown dtype 'F8_E4M3'"},
      {"dtype in small letters", w(R"("f32")", "[1]", "[0,4]"), "'w' has the unknown dtype 'f32'"},
      {"empty dtype", w(R"("")", "[1]", "[0,4]"), "'w' has the unknown dtype ''"},
      {"shape that is a number", w(f32, "1", "[0,4]"), "'w' should have an array for shape"},
      {"negative extent", w(f32, "[-1]", "[0,4]"), "'w' should have whole numbers in shape, but has a negative number"},
      {"minus zero", w(f32, "[-0]", "[0,0]"), "'w' should have whole numbers in shape"},
      {"fractional extent", w(f32, "[1.0]", "[0,4]"),
       "'w' should have whole numbers in shape, but has the number '1.0'"},
      {"extent with an exponent", w(f32, "[1e0]", "[0,4]"), "'w' should have whole numbers in shape"},
      {"extent that is NaN", w(f32, "[NaN]", "[0,4]"), "not JSON"},
      {"extent that is infinite", w(f32, "[1e999]", "[0,4]"), "'w'"},
      {"extent that is text", w(f32, R"(["1"])", "[0,4]"), "'w' should have whole numbers in shape"},
      {"extent that is true", w(f32, "[true]", "[0,4]"), "'w' should have whole numbers in shape"},
      {"extent of 2^63", w(f32, "[9223372036854775808]", "[0,4]"), "'w' has the extent 9223372036854775808"},
      {"extent of 2^64", w(f32, "[18446744073709551616]", "[0,4]"), "'w' should have whole numbers in shape"},
      {"huge extent", w(f32, "[9223372036854775807]", "[0,4]"), "'w' has extents that need more"},
      {"product of 2^64 and a bit", w(f32, "[4294967296,4294967296,1]", "[0,4]"), "'w' has extents that need more"},
      {"product that wraps to 1", w(R"("U8")", "[3,6148914691236517205,4]", "[0,4]"), "'w' has extents that need more"},
      {"one element too many", w(f32, "[2]", "[0,4]"), "'w' has extents that need more"},
      {"one element too few", safetensors(one(f32, "[1]", "[0,8]"), eight), "'w' needs 4 bytes by its extents"},
      {"zero elements with bytes", w(f32, "[0]", "[0,4]"), "'w' needs 0 bytes"},
      {"scalar without bytes", safetensors(one(f32, "[]", "[0,0]"), ""), "'w' needs 4 bytes by its extents"},
      {"half an element", safetensors(one(f32, "[1]", "[0,5]"), "12345"), "'w' needs 4 bytes"},
      {"one offset", w(f32, "[1]", "[0]"), "'w' has fewer than two data_offsets"},
      {"three offsets", w(f32, "[1]", "[0,4,4]"), "'w' has more than two data_offsets"},
      {"offsets that are a number", w(f32, "[1]", "4"), "'w' should have an array for data_offsets"},
      {"negative offset", w(f32, "[1]", "[-4,0]"), "'w' should have whole numbers in data_offsets"},
      {"fractional offset", w(f32, "[1]", "[0,4.0]"), "'w' should have whole numbers in data_offsets"},
      {"offsets backwards", w(f32, "[1]", "[4,0]"), "'w' is at bytes 4 to 0"},
      {"offsets beyond the file", w(f32, "[1]", "[4,8]"), "'w' is at bytes 4 to 8, but the file has 4"},
      {"offset of 2^64 - 1", w(f32, "[1]", "[18446744073709551611,18446744073709551615]"), "'w' is at bytes"},
      {"overlap", safetensors(vectors({{0, 8}, {4, 12}}), eight + four), "'b' begins at byte 4 and overlaps"},
      {"the same bytes twice", safetensors(vectors({{0, 8}, {0, 8}}), eight), "'b' begins at byte 0 and overlaps"},
      {"one within another", safetensors(vectors({{0, 12}, {4, 8}}), eight + four),
       "'b' begins at byte 4 and overlaps"},
      {"gap", safetensors(vectors({{0, 4}, {8, 12}}), eight + four), "'b' begins at byte 8 and leaves a gap"},
      {"gap at the start", safetensors(vectors({{4, 8}}), eight), "'a' begins at byte 4 and leaves a gap"},
      {"empty tensor within another", safetensors(vectors({{0, 8}, {4, 4}}), eight),
       "'b' begins at byte 4 and overlaps"},
      {"bytes at the end", safetensors(vectors({{0, 4}}), eight), "4 bytes at the end belong to no tensor"},
      {"bytes and no tensor", safetensors("{}", "1"), "1 bytes at the end"},
      {"integers that overlap", w(R"("I32","shape":[1],"data_offsets":[0,4]},"v":{"dtype":"I32")", "[1]", "[0,4]"),
       "overlaps"},
  };
}

}  // namespace

TEST_CASE("a header beyond the file's end is called truncated, and a header over 100 MB is called too long") {
  const Folder folder;
  const auto file = folder / "net.safetensors";
  const std::uint64_t longest = 100'000'000;
  write(file, length_bytes(longest + 1));
  CHECK_THROWS_WITH(read_safetensors(file), ContainsSubstring(file.string()) && ContainsSubstring("100000001 bytes") &&
                                                ContainsSubstring("truncated"));
  std::filesystem::resize_file(file, longest + 100);  // a sparse file, which uses no disk space
  CHECK_THROWS_WITH(read_safetensors(file), ContainsSubstring("100000001 bytes") && ContainsSubstring("100 MB") &&
                                                !ContainsSubstring("truncated"));
}

TEST_CASE("a hostile file is a FileError that names file and tensor") {
  const Folder folder;
  for (const Hostile& hostile : hostile_files()) {
    INFO(hostile.what);
    write(folder / "net.safetensors", hostile.bytes);
    largest_allocation_bytes = 0;
    const std::string message = said_by<FileError>([&] { read_safetensors(folder / "net.safetensors"); });
    const std::size_t largest = largest_allocation_bytes;
    CHECK_THAT(message, ContainsSubstring("net.safetensors: ") && ContainsSubstring(hostile.says));
    CHECK(message.size() < 600);
    CHECK(largest <= 16 * 1024 + 4 * hostile.bytes.size());  // the buffer of a stream, and a few times the file
  }
}

TEST_CASE("unusual but valid files are read") {
  const Folder folder;
  const auto reads = [&](const std::string& header, const std::string& data) {
    INFO(header);
    write(folder / "file", safetensors(header, data));
    return read_safetensors(folder / "file");
  };
  CHECK(reads("{}", "").empty());
  CHECK(reads("{}      ", "").empty());
  CHECK(reads("{\n \"__metadata__\" : { } }", "").empty());
  CHECK(reads(vectors({{4, 8}, {0, 4}}), std::string(8, '\0')).size() == 2);
  CHECK(reads(vectors({{0, 4}, {4, 4}, {0, 0}}), std::string(4, '\0')).size() == 3);
  CHECK(reads(one(R"("F32")", "[0,9223372036854775807,9223372036854775807]", "[0,0]"), "").at("w").values.empty());
  CHECK(reads(one(R"("BOOL")", "[3]", "[0,3]"), "abc").empty());
  CHECK(reads(R"({"":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", std::string(4, '\0')).contains(""));
}

TEST_CASE("a file truncated anywhere, or with an extra byte, is a FileError") {
  const Folder folder;
  const std::string whole = contents(test::data("tiny.safetensors"));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write(folder / "cut", whole.substr(0, length));
    INFO(length << " bytes");
    CHECK_THROWS_AS(read_safetensors(folder / "cut"), FileError);
  }
  write(folder / "long", whole + " ");
  CHECK_THROWS_AS(read_safetensors(folder / "long"), FileError);
}

TEST_CASE("a path that is no readable file is a FileError with the reason") {
  const Folder folder;
  CHECK_THROWS_WITH(read_safetensors(folder / "nothing"), ContainsSubstring("nothing: no such file"));
  CHECK_THROWS_WITH(read_safetensors(folder.path()), ContainsSubstring("not a regular file"));
  CHECK_THROWS_WITH(read_safetensors("/dev/zero"), ContainsSubstring("/dev/zero: not a regular file"));
  CHECK_THROWS_AS(read_safetensors(""), FileError);
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(read_safetensors(folder / "pipe"), ContainsSubstring("not a regular file"));
  std::filesystem::create_symlink("loop", folder / "loop");
  CHECK_THROWS_AS(read_safetensors(folder / "loop"), FileError);
  if (::geteuid() != 0) {  // root could read the file
    write(folder / "secret", safetensors("{}", ""));
    REQUIRE(::chmod((folder / "secret").c_str(), 0) == 0);
    CHECK_THROWS_WITH(read_safetensors(folder / "secret"), ContainsSubstring("cannot be opened"));
  }
}

TEST_CASE("random damage gives a FileError or tensors that fit their extents") {
  const Folder folder;
  const std::string whole = contents(test::data("tiny.safetensors"));
  std::vector<std::string> words;
  for (const char letter : std::string("{}[]\",:0123456789-.eE\\ntf \xFF\x80")) words.emplace_back(1, letter);
  std::mt19937 random(20240607);
  const std::size_t header_end = whole.rfind('}');
  int refused = 0, read = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string damaged = test::damaged(whole, header_end, words, random);
    if (random() % 2 == 0 && damaged.size() >= 8) {  // corrects the length, so that the reader reaches later damage
      const std::size_t brace = damaged.rfind('}');
      if (brace != std::string::npos && brace > 8) damaged.replace(0, 8, length_bytes(brace + 1 - 8));
    }
    write(folder / "damaged", damaged);
    largest_allocation_bytes = 0;
    try {
      const TensorFile file = read_safetensors(folder / "damaged");
      ++read;
      for (const auto& [name, host] : file) {
        std::uint64_t count = 1;
        for (const std::int64_t extent : host.extents) count *= static_cast<std::uint64_t>(extent);
        REQUIRE(count == host.values.size());
      }
    } catch (const FileError& error) {
      ++refused;
      REQUIRE_THAT(error.what(), ContainsSubstring("damaged: "));
    }
    REQUIRE(largest_allocation_bytes < 16 * 1024 + 8 * damaged.size());
  }
  CHECK(refused > 1000);
  CHECK(read > 10);
}
