/// The broker's own key, from which each worker's is derived.
#pragma once

#include <string>

#include "ipc/control/lease_token.hpp"

namespace leasehold {

/// Reads `<state_dir>/token.key`, or makes it (mode 0600) when there is none. `unused`: the books
/// begin anew: no number is known that was signed with it. Then one that lies there is replaced:
/// whoever lost the books may still have used it, and its tokens would fit the same numbers again.
/// Errors: PermissionDenied when others may read it, FileCorrupt, FileNotFound (no such directory),
/// SystemError.
Result<TokenKey> load_or_create_token_key(const std::string& state_dir, bool unused);

}  // namespace leasehold
