/// A bearer's proof that the broker granted a lease on one particular worker.
///
/// Written `v1:<lease>:<tenant>:<hex MAC>`; the MAC is libsodium's crypto_auth (HMAC-SHA-512-256)
/// over everything before it, with a key derived from the broker's key for that worker alone, so a
/// worker cannot mint a token for another. Comparison takes the same time whatever differs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/hex.hpp"
#include "common/ids.hpp"

namespace leasehold {

using TokenKey = std::array<unsigned char, 32>;

/// A fresh random key for a broker that has none yet.
TokenKey random_token_key();

/// The key of worker number `worker` at its `attachment`-th attach. Pure.
TokenKey derive_worker_key(const TokenKey& broker_key, WorkerId worker, std::uint64_t attachment);

Result<TokenKey> token_key_from_hex(std::string_view hex);

struct LeaseClaim {
  LeaseId lease;
  TenantId tenant;
  bool operator==(const LeaseClaim&) const = default;
};

std::string mint_token(const TokenKey& worker_key, const LeaseClaim& claim);

/// BadToken for anything `mint_token` with this key did not write.
Result<LeaseClaim> verify_token(const TokenKey& worker_key, std::string_view token);

}  // namespace leasehold
