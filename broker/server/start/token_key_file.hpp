/// The broker's token key, from which each worker's key is derived.
#pragma once

#include <string>

#include "ipc/control/tokens/lease_token.hpp"

namespace leasehold {

/// Reads `<state_dir>/token.key`, or creates it with mode 0600. With `replace`, replaces an
/// existing key: the state is new and its generations start again, so tokens under the old key
/// could match them. Errors: PermissionDenied when other users may read the file, FileCorrupt;
/// those of write_state_file.
Result<TokenKey> load_or_create_token_key(const std::string& state_dir, bool replace);

}  // namespace leasehold
