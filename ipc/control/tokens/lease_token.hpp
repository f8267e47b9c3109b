/// A bearer token: proof that the broker granted a lease on one particular worker.
///
/// Format: `v1:<lease>:<tenant>:<hex MAC>`. The MAC is libsodium's crypto_auth (HMAC-SHA-512-256)
/// over everything before it. Its key is derived from the broker's key for that worker alone, so a
/// worker cannot mint a token for another. The comparison takes constant time.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/hex.hpp"
#include "common/ids.hpp"

namespace leasehold {

using TokenKey = std::array<unsigned char, 32>;

/// Returns a new random key, for a broker that has none yet.
TokenKey random_token_key();

/// The key of this worker for this attachment. Pure.
TokenKey derive_worker_key(const TokenKey& broker_key, WorkerId worker, std::uint64_t attachment);

/// The inverse of to_hex (common/hex.hpp). Errors: BadRequest for anything but 64 hex digits.
Result<TokenKey> token_key_from_hex(std::string_view hex);

struct LeaseClaim {
  LeaseId lease;
  TenantId tenant;
  bool operator==(const LeaseClaim&) const = default;
};

std::string mint_token(const TokenKey& worker_key, const LeaseClaim& claim);

/// Errors: BadToken for anything that `mint_token` did not write with this key.
Result<LeaseClaim> verify_token(const TokenKey& worker_key, std::string_view token);

/// Does what `verify_token` does. A token of another tenant gets the same error.
Result<LeaseClaim> verify_token_of(const TenantId& tenant, const TokenKey& worker_key,
                                   std::string_view token);

}  // namespace leasehold
