/// The commands and options of a program as a list, for everything that is generated from them:
/// completions and manual pages. Pure.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace leasehold {

struct CommandOption {
  std::vector<std::string> names;   ///< "-o", "--output"; for a positional, its name.
  std::string value;                ///< "TEXT", "UINT"; empty for a flag.
  std::vector<std::string> values;  ///< All allowed values, if they are a closed list.
  std::string help;
  bool is_positional = false;
};

struct Command {
  std::string path;  ///< "tenants admit"; empty for the program itself.
  std::string help;
  std::string examples;               ///< One per line.
  std::vector<std::string> commands;  ///< Names of its subcommands.
  std::vector<std::string> aliases;   ///< Other names of its last word.
  std::vector<CommandOption> options;
};

/// The first line of a footer with examples.
inline constexpr const char* kExamplesTitle = "Examples:\n";

/// The program, then its commands, each before its own subcommands.
std::vector<Command> command_tree(const CLI::App& app);

}  // namespace leasehold
