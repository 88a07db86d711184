// Reads plain files and, with zlib, gzip streams (RFC 1952).

#include "byte_source.h"

#include <zlib.h>

#include <new>

#include "lamina/error.h"

namespace lamina {

/// The stream being unpacked, and the packed bytes that were read ahead for it.
struct ByteSource::Gzip {
  z_stream stream{};
  std::array<std::uint8_t, 1 << 16> packed;
  bool ended = false;

  Gzip() {
    constexpr int gzip_only = 15 + 16;  // 15: the largest window; 16: only with a gzip header
    const int status = inflateInit2(&stream, gzip_only);
    if (status != Z_OK) throw std::bad_alloc();  // the only error that these arguments allow
  }
  ~Gzip() { inflateEnd(&stream); }
  Gzip(const Gzip&) = delete;  // zlib keeps the stream's address
  Gzip& operator=(const Gzip&) = delete;
};

ByteSource::ByteSource(const std::filesystem::path& path) : file_(path), unread_(file_.bytes()), limit_(unread_) {
  if (!file_.start().starts_with("\x1F\x8B")) return;
  gzip_ = std::make_unique<Gzip>();
  limit_ = std::max(least_limit_bytes, file_.bytes() * most_expansion);
}

ByteSource::~ByteSource() = default;

void ByteSource::fail(const std::string& what) const { throw FileError(file_.name() + ": " + what); }

std::uint64_t ByteSource::left() const { return limit_ - given_; }

std::size_t ByteSource::some(std::span<std::uint8_t> to) {
  const std::size_t count = gzip_ ? some_unpacked(to) : some_of_file(to);
  given_ += count;
  if (given_ > limit_)  // never without gzip
    fail("its gzip stream gives more than " + std::to_string(limit_) + " bytes, over " +
         std::to_string(most_expansion) + " for each byte of the file; to read it anyway, unpack it first");
  return count;
}

std::size_t ByteSource::some_of_file(std::span<std::uint8_t> to) {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(to.size(), unread_));
  file_.read(std::as_writable_bytes(to.first(count)));
  unread_ -= count;
  return count;
}

std::size_t ByteSource::some_unpacked(std::span<std::uint8_t> to) {
  Gzip& gzip = *gzip_;
  constexpr std::size_t most_at_once = std::size_t{1} << 30;  // zlib counts in 32 bits
  std::size_t done = 0;
  while (done < to.size() && !gzip.ended) {
    if (gzip.stream.avail_in == 0) {
      gzip.stream.next_in = gzip.packed.data();
      gzip.stream.avail_in = static_cast<uInt>(some_of_file(gzip.packed));
      if (gzip.stream.avail_in == 0) fail("its gzip stream is truncated");
    }
    const std::size_t wanted = std::min(to.size() - done, most_at_once);
    gzip.stream.next_out = to.data() + done;
    gzip.stream.avail_out = static_cast<uInt>(wanted);
    const int status = inflate(&gzip.stream, Z_NO_FLUSH);
    done += wanted - gzip.stream.avail_out;
    if (status == Z_STREAM_END) {
      gzip.ended = true;
      if (gzip.stream.avail_in != 0 || unread_ != 0) fail("has bytes after its gzip stream");
    } else if (status == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (status != Z_OK) {
      fail("its gzip stream is damaged" + (gzip.stream.msg == nullptr ? "" : ": " + std::string(gzip.stream.msg)));
    }
  }
  return done;
}

void ByteSource::read(std::span<std::uint8_t> to, const char* what) {
  const std::size_t count = some(to);
  if (count < to.size())
    fail("ends after " + std::to_string(given_) + " bytes, " + std::to_string(to.size() - count) +
         " before the end of " + what);
}

std::vector<std::uint8_t> ByteSource::take(std::uint64_t count, const char* what) {
  if (count > left())
    fail("should have " + std::to_string(count) + " bytes of " + what + ", but " +
         (gzip_ ? "its gzip stream may give at most " : "has only ") + std::to_string(left()) +
         (gzip_ ? " (" + std::to_string(most_expansion) + " for each byte of the file, but at least 1 MiB)" : ""));
  // A gzip stream may give less than its limit, so memory grows with the unpacked bytes.
  constexpr std::size_t first_step = std::size_t{1} << 16;
  std::vector<std::uint8_t> bytes;
  while (bytes.size() < count) {
    const std::size_t done = bytes.size();
    const std::uint64_t step = gzip_ ? std::max(first_step, done) : count;
    bytes.resize(static_cast<std::size_t>(std::min(count, done + step)));
    read(std::span(bytes).subspan(done), what);
  }
  return bytes;
}

std::vector<std::uint8_t> ByteSource::rest() {
  if (!gzip_) return take(left(), "data");
  std::vector<std::uint8_t> bytes;
  for (std::size_t done = 0;;) {
    bytes.resize(done + std::max(std::size_t{1} << 16, done));
    const std::size_t count = some(std::span(bytes).subspan(done));
    done += count;
    if (done < bytes.size()) {
      bytes.resize(done);
      return bytes;
    }
  }
}

void ByteSource::finish() {
  std::uint8_t one;
  const std::uint64_t end = given_;
  if (some(std::span(&one, 1)) != 0) {
    const std::uint64_t more = gzip_ ? 0 : 1 + unread_;
    fail("should end after " + std::to_string(end) + " bytes, but has " +
         (more == 0 ? std::string("more") : std::to_string(more) + " more"));
  }
}

}  // namespace lamina
