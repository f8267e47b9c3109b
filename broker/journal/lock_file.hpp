/// One broker per state directory.
#pragma once

#include <string>

#include "common/unique_fd.hpp"

namespace leasehold::journal {

/// Takes `<state_dir>/broker.lock` for as long as the descriptor lives; the kernel lets go when the
/// process dies. Source: flock(2).
/// Errors: SocketInUse when another broker has it; those of state_file_error.
Result<UniqueFd> lock_state_dir(const std::string& state_dir);

}  // namespace leasehold::journal
