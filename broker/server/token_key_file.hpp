/// The broker's token key, from which each worker's key is derived.
#pragma once

#include <string>

#include "ipc/control/lease_token.hpp"

namespace leasehold {

/// Reads `<state_dir>/token.key`, or creates it with mode 0600. `replace`: the state is new, so its
/// generations start again; an existing key is replaced, because old tokens could match them.
/// Errors: PermissionDenied when other users may read the file, FileCorrupt; those of
/// write_state_file.
Result<TokenKey> load_or_create_token_key(const std::string& state_dir, bool replace);

}  // namespace leasehold
