/// One TOML file with the options of a program: `threads = 4` is `--threads 4`. The keys are the
/// long names of the options of the CLI11 app, so there is only one list of them.
///
/// Precedence: the command line, then the environment, then the file, then the default.
/// Threads: one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/cli/config_reload.hpp"
#include "common/result.hpp"

namespace CLI {
class App;
}

namespace leasehold {

/// Thrown while a command line is parsed, for a file that cannot be used. `parse_cli_arguments`
/// catches it.
struct ConfigErrors {
  std::vector<Error> errors;  ///< At least one. One for each wrong key, with "FILE:LINE: ".
};

/// Adds --config, --check-config and --print-config. Call it before other options are added: the
/// file is applied before they are evaluated. `app` outlives the parse.
///
/// The file must be a regular file of this user or root that no other user can write to. Errors
/// (see ConfigErrors): PermissionDenied, FileNotFound, MessageTooLarge; BadRequest for text that
/// is not TOML, unknown keys and wrong values.
void add_config_options(CLI::App& app);

/// Call it once everything else about the options has been checked. Performs --check-config and
/// --print-config; returns the exit code to end with, or nothing to continue. `check_files`: reads
/// what a start would read later; it is called for --check-config alone.
std::optional<int> finish_config(CLI::App& app,
                                 const std::function<Result<void>()>& check_files = nullptr);

/// The effective values as TOML: each key with its help text, and as a comment where it has
/// neither a value nor a default. Errors: BadRequest for a value that is not UTF-8.
Result<std::string> config_text(const CLI::App& app);

/// The effective values, for a later reload. Errors: as config_text.
Result<ConfigValues> config_values(const CLI::App& app);

}  // namespace leasehold
