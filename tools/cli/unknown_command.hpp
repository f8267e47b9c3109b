/// Finds the command, or noun and verb, in a command line. Explains a mistyped command, which CLI11
/// reports only as an unexpected argument, and accepts a command's options before the command.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace leasehold::cli {

/// Functions that return the command line to use instead of a command that does not exist; empty
/// if there is none. `words` begin with that command.
struct OtherWords {
  using Find = std::function<std::string(std::span<const std::string> words)>;
  Find before_typos = {};  ///< Called first.
  Find after_typos = {};   ///< Called if no known command resembles the word.
};

/// `words` is the command line without the program's name. Returns what is wrong, the nearest known
/// command and the list of commands; nothing when the noun and its verb exist. For a verb without
/// its noun, the text suggests both: `tenants admit` for `admit`. Without words, it says that a
/// command is missing. Pure.
std::optional<std::string> unknown_command(const CLI::App& app, std::span<const std::string> words,
                                           const OtherWords& other = {});

/// Moves options that only the command knows from before the command to after it, where CLI11
/// accepts them: returns `events --limit 5` for `--limit 5 events`. Pure.
std::vector<std::string> options_behind_command(const CLI::App& app,
                                                std::span<const std::string> words);

}  // namespace leasehold::cli
