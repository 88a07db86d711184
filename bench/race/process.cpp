// Another program run to its end.

#include "process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "io/interrupt.h"
#include "lamina/error.h"

extern char** environ;  // NOLINT: POSIX has it so

namespace lamina::bench {
namespace {

/// Texts as the null-ended array of pointers that exec takes.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> changed_environment(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (!changes.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : changes) result.push_back(name + "=" + value);
  return result;
}

/// `before`: how many interruptions there were when the child was started.
int wait_for(pid_t child, int before) {
  int status = 0, told = before;
  const auto tell = [&] {
    for (; told < interruptions(); ++told) ::kill(-child, interrupted());
  };
  tell();
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
    tell();
  }
  return status;
}

}  // namespace

Ended run_process(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                  const std::map<std::string, std::string>& environment) {
  std::vector<std::string> words = {program.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = changed_environment(environment);
  const std::vector<char*> argv = pointers(words), envp = pointers(variables);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // its own: the group's default is 0
  pid_t child = 0;
  const int before = interruptions();
  const int error = ::posix_spawn(&child, program.c_str(), &actions, &attributes, argv.data(), envp.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw UsageError(fmt::format("cannot run {}: {}", program.string(), std::strerror(error)));

  const int status = wait_for(child, before);
  if (WIFSIGNALED(status))
    return {128 + WTERMSIG(status), fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))};
  return {WEXITSTATUS(status), fmt::format("exit status {}", WEXITSTATUS(status))};
}

std::filesystem::path own_program() { return std::filesystem::read_symlink("/proc/self/exe"); }

}  // namespace lamina::bench
