/// Reads the command, or noun and verb, in a command line: explains a mistyped one, which CLI11
/// reports only as an unexpected argument, and lets its options stand before it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace leasehold::cli {

/// `words` is the command line without the program's name. Returns what is wrong, the nearest known
/// command and the list of commands; nothing when the noun and its verb exist. A verb typed without
/// its noun is answered with both: `admit` with `tenants admit`. Without words a command is
/// missing. Pure.
std::optional<std::string> unknown_command(const CLI::App& app, std::span<const std::string> words);

/// The words with the options before the command that only the command knows moved behind it, where
/// CLI11 accepts them: `events --limit 5` for `--limit 5 events`. Pure.
std::vector<std::string> options_behind_command(const CLI::App& app,
                                                std::span<const std::string> words);

}  // namespace leasehold::cli
