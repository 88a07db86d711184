#pragma once
// Contents of data set files, made by hand: numbers as bytes, gzip streams, complete files.

#include <zlib.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lamina::test {

inline std::string be32(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xFF);
  return bytes;
}

inline std::string le16(std::uint32_t number) {
  return {static_cast<char>(number & 0xFF), static_cast<char>(number >> 8 & 0xFF)};
}

inline std::string le32(std::uint32_t number) { return le16(number) + le16(number >> 16); }

/// The bytes, compressed as one gzip stream.
inline std::string gzip(std::string_view bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK) throw std::runtime_error("deflate");
  std::string packed(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int status = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw std::runtime_error("deflate");
  return packed;
}

/// An MNIST file of three images of 2 x 3 pixels with labels 7, 0, 9.
inline std::string mnist_images() {
  std::string bytes = be32(0x803) + be32(3) + be32(2) + be32(3);
  for (int i = 0; i < 18; ++i) bytes += static_cast<char>(14 * i);
  return bytes;
}
inline std::string mnist_labels() { return be32(0x801) + be32(3) + std::string("\7\0\11", 3); }

/// Two CIFAR-10 records. The first has label 3 and pixels 0, 1, 2, ... The second has label 9, and all its pixels are
/// 200.
inline std::string cifar_records() {
  std::string bytes = "\3";
  for (int i = 0; i < 3072; ++i) bytes += static_cast<char>(i & 0xFF);
  return bytes + '\11' + std::string(3072, static_cast<char>(200));
}

/// A file of ids with the lists {1, 5}, {}, {70000, 2, 3}, the labels 1, 0, 1 and a vocabulary of 70001.
inline std::string id_lists() {
  return "LIDS" + le32(1) + le32(3) + le32(70001) + le32(2) + le16(2) + le32(1) + le32(5) + le16(0) + le16(3) +
         le32(70000) + le32(2) + le32(3) + std::string("\1\0\1", 3);
}

}  // namespace lamina::test
