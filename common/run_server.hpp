/// The main of a server program: what it does before it serves, and how it ends.
#pragma once

#include <functional>
#include <string_view>

#include "common/result.hpp"

namespace leasehold {

struct ServerProgram {
  std::string_view name;           ///< As its log and errors show it.
  std::string_view log_level;      ///< As of set_up_log.
  std::string_view memory_advice;  ///< What a user can do when the process has no more memory.
};

/// Ignores SIGPIPE and SIGXFSZ, sets up the log and runs `body`. A reader that is gone and a file
/// size limit are then errors of a write, and the program goes on. Prints the error of `body`, also
/// one that is an exception. Returns the exit code.
int run_server(const ServerProgram& program, const std::function<Result<void>()>& body);

}  // namespace leasehold
