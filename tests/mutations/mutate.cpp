// mutate: reads the list of seeded bugs, checks that each is still in its source, and writes a copy of the project with
// all bugs. A bug is inactive until the environment variable LAMINA_MUTANT has its name.
//
// usage: mutate check LIST ROOT          checks that each entry is complete, and its text is in its file exactly once
//        mutate make LIST ROOT COPY      checks, and writes the copy; unchanged files are not written again
//        mutate table LIST               prints name, backend, test binary and test of each bug, tab-separated
//
// The beginning of the list describes its format.

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Mutant {
  std::string name, file, find, with, test;
  bool statement = false;
  int number = 0;
};

/// The position of a bug: characters [begin, end) of its file.
struct Span {
  std::size_t begin, end;
  const Mutant* mutant;
};

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

bool starts(std::string_view line, std::string_view key, std::string_view& rest) {
  if (!line.starts_with(key)) return false;
  rest = line.substr(std::min(line.size(), line.find_first_not_of(' ', key.size())));
  return true;
}

/// Splits "@{was => is}@" into its parts. `find` keeps "@{was}@".
void split(Mutant& mutant) {
  const std::size_t open = mutant.find.find("@{"), arrow = mutant.find.find("=>", open),
                    close = mutant.find.find("}@", arrow);
  if (close == std::string::npos) fail("mutant " + mutant.name + " lacks @{was => is}@ in its text");
  mutant.with = mutant.find.substr(arrow + 2, close - arrow - 2);
  mutant.find.erase(arrow, close - arrow);
  mutant.statement = mutant.find.substr(0, arrow).find_last_not_of(" \n") == mutant.find.rfind(';', arrow);
}

std::vector<Mutant> read_list(const fs::path& path) {
  constexpr std::pair<std::string_view, std::string Mutant::*> fields[] = {
      {"file:", &Mutant::file}, {"find:", &Mutant::find}, {"test:", &Mutant::test}};
  std::vector<Mutant> mutants;
  std::ifstream in(path);
  if (!in) fail("cannot read " + path.string());
  std::set<std::string> names;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::string place = path.string() + ":" + std::to_string(number) + ": ";
    std::string_view rest;
    if (line.empty() || line.starts_with('#')) continue;
    if (starts(line, "mutant:", rest)) {
      if (!names.insert(std::string(rest)).second) fail(place + "a second mutant " + std::string(rest));
      mutants.emplace_back().name = rest;
      mutants.back().number = static_cast<int>(mutants.size());
      continue;
    }
    if (mutants.empty()) fail(place + "the first line of an entry is 'mutant: NAME'");
    const auto its = std::find_if(std::begin(fields), std::end(fields),
                                  [&](const auto& field) { return starts(line, field.first, rest); });
    if (its == std::end(fields)) fail(place + "neither of mutant, file, find, test: " + line);
    std::string& text = mutants.back().*its->second;
    text += (text.empty() ? "" : "\n") + std::string(rest);
  }
  for (std::size_t i = 1; i < mutants.size(); ++i) {
    if (mutants[i].file.empty()) mutants[i].file = mutants[i - 1].file;
    if (mutants[i].test.empty()) mutants[i].test = mutants[i - 1].test;
  }
  for (Mutant& mutant : mutants) {
    if (mutant.file.empty() || mutant.find.empty() || mutant.test.find(": ") == std::string::npos)
      fail("mutant " + mutant.name + " lacks file, find, or a test of the form 'binary: name of the test'");
    split(mutant);
  }
  return mutants;
}

/// Text without white space, with the original position of each character. So a change of formatting does not matter.
struct Dense {
  std::string text;
  std::vector<std::size_t> at;
};

Dense dense(std::string_view source) {
  Dense out;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (std::isspace(static_cast<unsigned char>(source[i]))) continue;
    out.text += source[i];
    out.at.push_back(i);
  }
  return out;
}

Span locate(const Mutant& mutant, const Dense& source) {
  std::string text = dense(mutant.find).text;
  const std::size_t open = text.find("@{");
  text.erase(open, 2);
  const std::size_t close = text.find("}@", open);
  text.erase(close, 2);
  if (open == close) fail("mutant " + mutant.name + ": there is nothing to replace");
  const std::size_t found = source.text.find(text);
  if (found == std::string::npos) fail("mutant " + mutant.name + ": its text is not in " + mutant.file);
  if (source.text.find(text, found + 1) != std::string::npos)
    fail("mutant " + mutant.name + ": its text is in " + mutant.file + " more than once");
  return {source.at[found + open], source.at[found + close - 1] + 1, &mutant};
}

/// The source with every bug. Bugs at the same position are nested, and each checks whether it is chosen.
std::string seeded(const std::string& source, std::vector<Span> spans) {
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::string out;
  std::size_t done = 0;
  for (std::size_t i = 0; i < spans.size();) {
    const Span span = spans[i];
    if (span.begin < done) fail("mutant " + span.mutant->name + " overlaps another one");
    out += source.substr(done, span.begin - done);
    std::string text = source.substr(span.begin, span.end - span.begin);
    for (; i < spans.size() && spans[i].begin == span.begin; ++i) {
      const Mutant& mutant = *spans[i].mutant;
      if (spans[i].end != span.end) fail("mutant " + mutant.name + " overlaps " + span.mutant->name);
      const std::string chosen = "::lamina_mutants::on(" + std::to_string(mutant.number) + ")";
      text = mutant.statement ? "if (" + chosen + ") {" + mutant.with + "} else {" + text + "}"
                              : "(" + chosen + " ? (" + mutant.with + ") : (" + text + "))";
    }
    out += text;
    done = span.end;
  }
  return out + source.substr(done);
}

std::string switch_header(const std::vector<Mutant>& mutants) {
  std::string names;
  for (const Mutant& mutant : mutants) names += "\"" + mutant.name + "\",";
  return R"(#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
namespace lamina_mutants {
inline int chosen() {
  static const int number = [] {
    const char* const names[] = {)" +
         names + R"(nullptr};
    const char* const name = std::getenv("LAMINA_MUTANT");
    if (name == nullptr || *name == '\0') return 0;
    for (int i = 0; names[i] != nullptr; ++i)
      if (std::strcmp(name, names[i]) == 0) return i + 1;
    std::fprintf(stderr, "LAMINA_MUTANT: there is no mutant %s\n", name);
    std::abort();
  }();
  return number;
}
// In constant expressions every bug is inactive, so these still compile.
constexpr bool on(int number) { return !__builtin_is_constant_evaluated() && chosen() == number; }
}  // namespace lamina_mutants
)";
}

void write(const fs::path& path, const std::string& text) {
  if (fs::exists(path) && contents(path) == text) return;
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) fail("cannot write " + path.string());
}

/// All files of the project, except build outputs and hidden files.
std::vector<fs::path> project_files(const fs::path& root) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& top : fs::directory_iterator(root)) {
    const std::string name = top.path().filename().string();
    if (name.starts_with('.') || name == "build" || name == "results") continue;
    if (top.is_regular_file()) files.push_back(fs::relative(top.path(), root));
    if (!top.is_directory()) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top.path()))
      if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), root));
  }
  return files;
}

void make_copy(const fs::path& root, const fs::path& copy, const std::vector<Mutant>& mutants,
               const std::map<std::string, std::vector<Span>>& spans) {
  const fs::path header = fs::absolute(copy) / "mutants.h";
  std::set<fs::path> written = {"mutants.h"};
  write(header, switch_header(mutants));
  std::set<fs::path> with_fragments;  // folders whose sources include a seeded .inc file within a namespace
  for (const auto& [file, its] : spans)
    if (file.ends_with(".inc")) with_fragments.insert(fs::path(file).parent_path());
  for (const fs::path& file : project_files(root)) {
    std::string text = contents(root / file);
    const auto found = spans.find(file.generic_string());
    if (found != spans.end()) text = seeded(text, found->second);
    if (file.extension() == ".cpp" ? with_fragments.contains(file.parent_path()) || found != spans.end()
                                   : file.extension() != ".inc" && found != spans.end())
      text = "#include \"" + header.string() + "\"\n#line 1\n" + text;
    write(copy / file, text);
    written.insert(file);
  }
  std::vector<fs::path> stale;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(copy))
    if (entry.is_regular_file() && !written.contains(fs::relative(entry.path(), copy))) stale.push_back(entry.path());
  for (const fs::path& path : stale) fs::remove(path);
}

int run(const std::vector<std::string>& words) {
  if (words.size() < 2) fail("usage: mutate check|make|table LIST [ROOT [COPY]]");
  const std::vector<Mutant> mutants = read_list(words[1]);
  if (words[0] == "table" && words.size() == 2) {
    for (const Mutant& mutant : mutants) {
      const std::size_t colon = mutant.test.find(": "), space = mutant.test.find(' ');
      const bool on_backend = space < colon;
      const std::size_t binary = on_backend ? space + 1 : 0;
      std::cout << mutant.name << '\t' << (on_backend ? mutant.test.substr(0, space) : "eigen") << '\t'
                << mutant.test.substr(binary, colon - binary) << '\t' << mutant.test.substr(colon + 2) << '\n';
    }
    return 0;
  }
  const bool make = words[0] == "make" && words.size() == 4;
  if (!make && !(words[0] == "check" && words.size() == 3)) fail("usage: mutate check|make|table LIST [ROOT [COPY]]");

  std::map<std::string, std::vector<Span>> spans;
  std::map<std::string, std::string> sources;
  std::string misfits;
  for (const Mutant& mutant : mutants) {
    try {
      if (!sources.contains(mutant.file)) sources[mutant.file] = contents(fs::path(words[2]) / mutant.file);
      spans[mutant.file].push_back(locate(mutant, dense(sources[mutant.file])));
    } catch (const std::exception& error) {
      misfits += (misfits.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  if (!misfits.empty()) fail(misfits);
  for (const auto& [file, in_file] : spans) seeded(sources[file], in_file);
  if (make) make_copy(words[2], words[3], mutants, spans);
  return 0;
}

}  // namespace

int main(int argc, char* argv[]) {
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    std::cerr << "mutate: " << error.what() << '\n';
    return 1;
  }
}
