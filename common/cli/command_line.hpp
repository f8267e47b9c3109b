/// Command-line parsing that all programs share.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/cli/print_error.hpp"

namespace CLI {
class App;
}

namespace leasehold {

/// Exit codes of every program, besides exit_code(Errc).
inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 2;

/// Why a program does not start: requested help (kExitOk, for stdout), or an error in its arguments
/// (kExitUsage) or in its configuration file.
struct Usage {
  int exit_code = kExitUsage;
  std::string text;
  std::vector<Error> config_errors;  ///< If not empty, they are printed and `text` is empty.
};

/// Parses `arguments`, which do not include the program's name. Rejects negative and out-of-range
/// unsigned options, which CLI11 would silently convert, and empty values: an unset shell variable
/// would silently disable the option. A program without commands gets --man. Call it once, after
/// `app` has its name and all options, including those of subcommands.
std::optional<Usage> parse_cli_arguments(CLI::App& app, std::span<const std::string> arguments);

// Checks of options. Each returns what is wrong, or nothing.

/// A path for a Unix socket: at most 107 bytes, and not a directory.
std::string check_socket_path(const std::string& path);
/// A name of a tenant, a worker or a request.
std::string check_name(const std::string& text);
/// A file that exists or can be created; not a directory.
std::string check_file_path(const std::string& path);
/// A directory that exists or can be created.
std::string check_directory_path(const std::string& path);

/// The line for wrong usage: "leasehold-worker: --threads: …; next: …".
std::string format_error(std::string_view program, const Usage& usage);

/// Prints help to stdout, or the usage error to stderr. Returns the exit code.
int print_error(std::string_view program, const Usage& usage);

/// Parses and prints, for main. Returns the exit code to end with, or nothing to continue.
std::optional<int> parse_command_line(CLI::App& app, int argc, char** argv);

}  // namespace leasehold
