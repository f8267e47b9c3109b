/// The main of a server program: what it does before it serves, and how it ends.
#pragma once

#include <functional>
#include <string_view>

#include "common/result.hpp"

namespace leasehold {

struct ServerProgram {
  std::string_view name;           ///< Shown in the log and in errors.
  std::string_view log_level;      ///< See set_up_log.
  std::string_view memory_advice;  ///< What a user can do when the process has no more memory.
};

/// Ignores SIGPIPE and SIGXFSZ, sets up the log and runs `body`. A write to a closed pipe, or
/// beyond the file size limit, then returns an error instead of ending the program. Prints the
/// error that `body` returns or throws. Returns the exit code.
int run_server(const ServerProgram& program, const std::function<Result<void>()>& body);

}  // namespace leasehold
