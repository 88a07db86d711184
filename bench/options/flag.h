#pragma once
// A flag, declared once: how it is read, the word that gives its value again, and what of it is in the key of a row.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "flags.h"

namespace lamina::bench {

/// Which keys have a flag. `in_place`: all, as a field of their own. `files`: those of networks that are read from
/// files.
enum class Keys { none, in_place, all, networks, trainings, net_rows, layers, files, eigen };

/// A row of a table of flags.
template <class Settings>
struct Flag {
  std::string name;  ///< as CLI11 takes it: "--image", "!--unfused", "--softmax,!--no_softmax"
  unsigned set;      ///< one of FlagSet
  std::function<CLI::Option*(CLI::App&, const std::string& name, Settings&)> add;
  std::function<std::optional<std::string>(const Settings&)> value;  ///< as a word; none: the default
  Keys keys = Keys::none;
  std::string key{};  ///< name in keys; if it is not the flag's name, the key has no value

  /// "--image=64", "--unfused", "--no_softmax"; none: it is the default.
  std::optional<std::string> word(const Settings& settings) const {
    const std::optional<std::string> its = value(settings);
    if (!its) return its;
    if (const std::size_t no = name.find(",!"); no != std::string::npos)
      return *its == "1" ? name.substr(0, no) : name.substr(no + 2);
    return name.substr(name.starts_with('!') ? 1 : 0) + (its->empty() ? "" : "=" + *its);
  }
};

// The value of a flag as a word.
inline std::string word_of(bool) { return {}; }  // a switch
inline std::string word_of(std::optional<bool> is) { return is.value_or(false) ? "1" : "0"; }
inline std::string word_of(Keep keep) { return keep == Keep::cheap ? "cheap" : "all"; }
inline std::string word_of(Mode) { return {}; }
inline std::string word_of(const std::string& text) { return text; }
inline std::string word_of(const std::filesystem::path& path) { return path.string(); }
inline std::string word_of(const std::pair<const std::string, std::int64_t>& pair) {
  return fmt::format("{}={}", pair.first, pair.second);
}
template <class T>
std::string word_of(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(to_string(value));
  } else if constexpr (requires { value.begin(); }) {
    std::string text;
    for (const auto& each : value) text += (text.empty() ? "" : ",") + word_of(each);
    return text;
  } else {
    return fmt::format("{}", value);
  }
}

/// `at` gives the field of settings; `add(app, name, field)` adds the option.
template <class Settings, class At, class Add>
Flag<Settings> flag(std::string name, unsigned set, At at, Add add, Keys keys = Keys::none, std::string key = {}) {
  const auto value = [at](const Settings& settings) {
    static const Settings usual{};
    return at(settings) == at(usual) ? std::nullopt : std::optional(word_of(at(settings)));
  };
  if (key.empty() && keys > Keys::in_place) key = name.substr(2, name.find(',') - 2);
  const auto add_to = [=](CLI::App& app, const std::string& as, Settings& to) { return add(app, as, at(to)); };
  return {std::move(name), set, add_to, value, keys, std::move(key)};
}
#define LAMINA_AT(field) \
  [](auto& settings) -> auto& { return settings.field; }

// How a flag is read: the parameter `add` of flag().
template <class... Checks>
auto value(const char* text, Checks... checks) {
  return [=](CLI::App& app, const std::string& name, auto& to) {
    auto* option = app.add_option(name, to, text);
    (option->check(checks), ...);
    return option;
  };
}
inline auto on(const char* text) {
  return [=](CLI::App& app, const std::string& name, bool& to) { return app.add_flag(name, to, text); };
}
template <class T>
auto one_of(const char* text, std::vector<std::pair<const char*, T>> known) {
  return [=](CLI::App& app, const std::string& name, T& to) { return add_choice(app, name, to, known, text); };
}

}  // namespace lamina::bench
