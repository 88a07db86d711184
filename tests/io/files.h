#pragma once
// Helpers for tests of files: a temporary folder, reading and writing whole files, safetensors files by hand.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lamina::test {

/// A new empty folder. Its destructor removes it with all contents.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "lamina-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;  // the folder on disk has one owner
  Folder& operator=(const Folder&) = delete;

  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  std::string file(std::string_view name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

/// The bytes with one to three random changes, half of them in the first `head` bytes. Some changes overwrite bytes
/// with `words` or insert `words`.
inline std::string damaged(std::string bytes, std::size_t head, std::span<const std::string> words,
                           std::mt19937& random) {
  const auto below = [&](std::size_t end) { return random() % end; };
  for (std::size_t change = 1 + below(3); change > 0 && !bytes.empty(); --change) {
    const std::size_t at = below(below(2) == 0 ? std::min(head, bytes.size()) : bytes.size());
    const std::string& word = words[below(words.size())];
    switch (below(7)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8)); break;
      case 1: bytes[at] = static_cast<char>(below(256)); break;
      case 2: bytes.replace(at - at % word.size(), word.size(), word); break;
      case 3: bytes.insert(at, word); break;
      case 4: bytes.insert(at, bytes.substr(below(bytes.size()), below(40))); break;
      case 5: bytes.erase(at, 1 + below(8)); break;
      default: bytes.resize(at);
    }
  }
  return bytes;
}

/// The length of a header as eight bytes, little-endian.
inline std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xFF);
  return bytes;
}

/// A safetensors file with this header and this data.
inline std::string safetensors(std::string_view header, std::string_view data) {
  return length_bytes(header.size()) + std::string(header) + std::string(data);
}

}  // namespace lamina::test
