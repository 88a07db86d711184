// Lists of ids in flat files; lamina/data.h has the format.

#include <array>
#include <limits>
#include <string>

#include "byte_source.h"
#include "lamina/data.h"
#include "lamina/error.h"
#include "lamina/new_file.h"
#include "sets.h"

namespace lamina {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::uint8_t, 4> magic = {'L', 'I', 'D', 'S'};
constexpr std::uint32_t version = 1;

template <class Number>
void put(std::vector<std::uint8_t>& bytes, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) bytes.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
}

}  // namespace

IdSet read_ids(const fs::path& path) {
  ByteSource source(path);
  std::array<std::uint8_t, 4> first;
  source.read(first, "the magic number");
  if (first != magic) source.fail("does not begin with LIDS, as files of ids do");
  const std::uint32_t found = source.read_number<std::uint32_t>("the version");
  if (found != version)
    source.fail("has version " + std::to_string(found) + "; this library reads version " + std::to_string(version));
  const std::uint32_t count = source.read_number<std::uint32_t>("the count");
  IdSet set;
  set.vocabulary = source.read_number<std::uint32_t>("the vocabulary");
  if (set.vocabulary == 0) source.fail("has a vocabulary of 0 ids");
  const std::uint32_t classes = source.read_number<std::uint32_t>("the classes");
  if (classes < 1 || classes > 256) source.fail("has " + std::to_string(classes) + " classes; give 1 to 256");
  set.classes = static_cast<int>(classes);

  std::vector<std::uint8_t> bytes;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t length = source.read_number<std::uint16_t>("the lists");
    bytes.resize(4 * length);
    source.read(bytes, "the lists");
    for (std::size_t k = 0; k < length; ++k) {
      const auto id = from_little_endian<std::uint32_t>(std::as_bytes(std::span(bytes)).data() + 4 * k);
      if (id >= set.vocabulary)
        source.fail("list " + std::to_string(i) + " has the id " + std::to_string(id) +
                    ", which is not below the vocabulary, " + std::to_string(set.vocabulary));
      set.ids.push_back(id);
    }
    set.ends.push_back(set.ids.size());
  }
  set.labels = source.take(count, "labels");
  source.finish();
  if (const std::string wrong = wrong_label(set.labels, set.classes, "list"); !wrong.empty()) source.fail(wrong);
  return set;
}

void write_ids(const fs::path& path, const IdSet& set) {
  check(set, "write_ids");
  if (set.vocabulary == 0) throw UsageError("write_ids: the vocabulary is 0");
  if (set.labels.size() > std::numeric_limits<std::uint32_t>::max())
    throw UsageError("write_ids: a file has at most 2^32 - 1 lists");
  NewFile file(path);
  std::vector<std::uint8_t> bytes(magic.begin(), magic.end());
  for (const std::uint32_t number :
       {version, static_cast<std::uint32_t>(set.count()), set.vocabulary, static_cast<std::uint32_t>(set.classes)}) {
    put(bytes, number);
  }
  constexpr std::size_t chunk_bytes = std::size_t{1} << 16;
  for (std::int64_t i = 0; i < set.count(); ++i) {
    const std::span<const std::uint32_t> list = set.list(i);
    if (list.size() > std::numeric_limits<std::uint16_t>::max())
      throw UsageError("write_ids: list " + std::to_string(i) + " has " + std::to_string(list.size()) +
                       " ids; the format allows 65535");
    put(bytes, static_cast<std::uint16_t>(list.size()));
    for (const std::uint32_t id : list) put(bytes, id);
    if (bytes.size() < chunk_bytes) continue;
    file.write(std::as_bytes(std::span(bytes)));
    bytes.clear();
  }
  file.write(std::as_bytes(std::span(bytes)));
  file.write(std::as_bytes(std::span(set.labels)));
  file.keep();
}

}  // namespace lamina
