/// One broker per state directory.
#pragma once

#include <string>

#include "common/unique_fd.hpp"

namespace leasehold::journal {

/// Locks `<state_dir>/broker.lock` until the descriptor is closed or the process ends.
/// Source: flock(2). Errors: SocketInUse if another broker has the lock; those of state_file_error.
Result<UniqueFd> lock_state_dir(const std::string& state_dir);

}  // namespace leasehold::journal
