/// Explains a mistyped command, or noun or verb, which CLI11 reports only as an unexpected
/// argument.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace CLI {
class App;
}

namespace leasehold::cli {

/// `words` is the command line without the program's name. Returns what is wrong, the nearest known
/// command and the list of commands; nothing when the noun and its verb exist. A verb typed without
/// its noun is answered with both: `admit` with `tenants admit`. Without words a command is
/// missing. Pure.
std::optional<std::string> unknown_command(const CLI::App& app, std::span<const std::string> words);

}  // namespace leasehold::cli
