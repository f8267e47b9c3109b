/// An API key: what an HTTP client shows a worker to act for a tenant.
///
/// Format: `lh-` and 64 hex digits, 256 random bits. brokerctl makes it and prints it once; the
/// broker keeps only its BLAKE2b-256 hash. A fast hash is enough: 2^256 keys cannot be tried, and a
/// slow one would let users without a key spend the broker's time.
///
/// A batch key is derived from an API key, which cannot be computed from it. A worker keeps it on
/// disk to run the batches of the key; the broker accepts it from a worker only, and only for
/// leases that give way to others (LeaseAcquire::scavenger). Format: `lhb-`, the id of the key,
/// `-` and 64 hex digits.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ipc/control/messages/common.hpp"

namespace leasehold {

/// Returns a new random key.
std::string mint_api_key();

/// True for a text of that format. Pure.
bool is_api_key(std::string_view text);

/// 64 lower-case hex digits. Any text has a hash. Pure.
std::string hash_of_api_key(std::string_view key);

/// The first 16 digits of the hash: names the key in lists and logs. Pure.
ApiKeyId api_key_id(std::string_view hash);

/// The batch key of the API key with this hash. Pure.
std::string batch_key_of_hash(std::string_view hash);

/// The id of the API key that a batch key names, which need not be valid; nothing for a text that
/// is not a batch key. Pure.
std::optional<ApiKeyId> key_of_batch_key(std::string_view batch_key);

}  // namespace leasehold
