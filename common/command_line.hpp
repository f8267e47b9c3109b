/// What all our programs do alike with the arguments on their command lines.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/print_error.hpp"

namespace CLI {
class App;
}

namespace leasehold {

/// Every program ends with one of these, or with exit_code(Errc).
inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 2;

/// Why a program does not start: help that was asked for (kExitOk, for stdout), or what is wrong
/// with its arguments (kExitUsage).
struct Usage {
  int exit_code = kExitUsage;
  std::string text;
};

/// `arguments` without the program's name. Options for unsigned numbers take no -1 and nothing that
/// fits into no 64 bits, of which CLI11 would make other numbers. To be called once, when `app` has
/// its name and all its options, those of subcommands too.
std::optional<Usage> parse_cli_arguments(CLI::App& app, std::span<const std::string> arguments);

/// Check of an option that must not be given an empty value: a variable that was not set would turn
/// it off unseen.
std::string not_empty(const std::string& text);

/// "leasehold-worker: --threads: …; next: …", for wrong usage.
std::string format_error(std::string_view program, const Usage& usage);

/// Help goes to stdout as it is, wrong usage is explained on stderr. The exit code to end with.
int print_error(std::string_view program, const Usage& usage);

/// Both of them, for main. The exit code to end with, or nothing: go on.
std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv);

}  // namespace leasehold
