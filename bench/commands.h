#pragma once
// The subcommands of lamina_bench: the name, the flags and the action of each. A new subcommand is a function in
// commands.cpp and a line in its list.

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/machine/backends.h"

namespace lamina::bench {

/// The action of a subcommand, with the options that were read. Gives the exit status.
using Action = std::function<int(const MakeBackend&)>;

struct Command {
  const char* name;
  const char* about;
  Action (*add)(CLI::App&);  ///< function that adds the flags and gives the action
  bool takes_ranks = false;  ///< whether mpirun may start several processes of the subcommand
};

std::span<const Command> commands();

std::vector<std::string> flags_of(const CLI::App&);  ///< flags of a subcommand: "--batch", ...

Action run_command(CLI::App&);  ///< adds the flags of `run`; in run_command.cpp

}  // namespace lamina::bench
