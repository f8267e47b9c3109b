/// `revoked/ID`: a key that was revoked. With it a command that was interrupted is repeated: it
/// waits for the hosts that the first one would have waited for. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "tools/cell/decide/names.hpp"

namespace leasehold::cell {

/// The revision that wrote it is that of the revocation.
struct RevokedKey {
  TenantId tenant;
  std::int64_t revoked_unix_ms = 0;  ///< By the clock of the operator's machine.
  std::vector<PartOwner> hosts;      ///< Those whose parts counted.
  bool operator==(const RevokedKey&) const = default;
};

/// Errors: BadRequest, which names `key` and the field.
Result<RevokedKey> read_revoked(std::string_view key, std::string_view value);
std::string text_of(const RevokedKey& key);

}  // namespace leasehold::cell
