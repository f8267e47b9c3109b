/// The broker's own key, from which each worker's is derived.
#pragma once

#include <string>

#include "ipc/control/lease_token.hpp"

namespace leasehold {

/// Reads `<state_dir>/token.key`, or makes it (mode 0600) when there is none. `unused`: the books
/// begin anew, and nothing tells what was signed with a key that lies there. It is replaced, or its
/// tokens would fit the same numbers again.
/// Errors: PermissionDenied when others may read it, FileCorrupt; those of write_state_file.
Result<TokenKey> load_or_create_token_key(const std::string& state_dir, bool unused);

}  // namespace leasehold
