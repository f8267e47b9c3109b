/// The frame of the programs that run scripts: signals, directory, exit code.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "tests/checks/runner/poller.hpp"

namespace leasehold::runner {

inline constexpr int kChecksFailed = 1;

/// The last line of a report.
std::string_view verdict(bool all_passed);

/// Runs in a temporary directory, which stays on disk after an error and after kChecksFailed;
/// stderr then names it after `content`, such as "Logs". Returns what `run` returns.
Result<int> run_in_directory(
    const std::string& name, std::string_view content, const Poller& poller,
    const std::function<Result<int>(const std::filesystem::path& directory)>& run);

/// Runs main once the command line is parsed. Returns the exit code: that of `run`, 130 after
/// Ctrl-C, or that of the error.
int run_program(std::string_view program,
                const std::function<Result<int>(const Poller& poller)>& run);

}  // namespace leasehold::runner
