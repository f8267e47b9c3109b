/// The API keys of tenants. Only hashes of the keys are stored.
///
/// A key is valid while the machine's clock shows a time before its expiry. A clock that was wrong
/// for a while therefore ends leases, but no keys.
///
/// Pure. Threads: one.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "broker/books/ids.hpp"
#include "broker/books/rate_shares.hpp"
#include "broker/books/rows.hpp"

namespace leasehold {

/// True if the key has expired when the clock shows `unix_ms`.
inline bool is_expired(const journal::ApiKeyRow& key, std::int64_t unix_ms) {
  return key.expires_unix_ms != 0 && key.expires_unix_ms <= unix_ms;
}

/// The key as lists show it.
wire::KeyView view_of(const journal::ApiKeyRow& key, const WallClock& wall, TimePoint now);

class ApiKeys {
 public:
  static constexpr std::size_t kMaxPerTenant = wire::kMaxKeysPerTenant;

  /// Errors: BadRequest for a key that exists; QuotaConcurrent for another one of a tenant with
  /// kMaxPerTenant keys.
  Result<void> add(const journal::ApiKeyRow& key, TimePoint now);
  void erase(const ApiKeyId& id);
  struct Unwritten {
    ApiKeyId id;
    std::uint32_t creator_uid = 0;
  };
  /// Notes that `call` added the key and is answered once the key is on disk.
  void await_write(CallId call, const Unwritten& key) { unwritten_.emplace(call, key); }
  /// Removes and returns the key that `call` added; nothing if the call added none.
  std::optional<Unwritten> take_unwritten(CallId call);
  /// True if the revocation of this key may not be on disk yet; an operator may then repeat it.
  bool is_revocation_unwritten(const ApiKeyId& id) const {
    return unwritten_revocations_.contains(id);
  }
  void revoke(const ApiKeyId& id);
  /// Call it when all rows are on disk.
  void revocations_written() { unwritten_revocations_.clear(); }
  /// Null for an unknown id.
  const journal::ApiKeyRow* find(const ApiKeyId& id) const;
  /// Finds the key that the caller shows. Errors: BadToken, with the same text for every unknown
  /// key, and with the time for an expired one.
  Result<const journal::ApiKeyRow*> verify(std::string_view shown, std::int64_t unix_ms) const;
  /// The same for a batch key.
  Result<const journal::ApiKeyRow*> verify_batch_key(std::string_view shown,
                                                     std::int64_t unix_ms) const;
  const std::set<ApiKeyId>& of(const TenantId& tenant) const;
  const std::map<ApiKeyId, journal::ApiKeyRow>& all() const { return keys_; }

  /// Replaces name, expiry and limits. Precondition: the key exists.
  void update(const journal::ApiKeyRow& changed);
  /// Counts tokens, and notes the minute as the last use. Does nothing for an unknown key.
  void count(const ApiKeyId& id, std::uint64_t tokens, const WallClock& wall, TimePoint now);
  /// Null for an unknown id.
  IdleTime* idle_time(const ApiKeyId& id);

  /// When the clock shows the expiry of the next key that `take_expired` has not returned.
  std::optional<std::int64_t> next_expiry_unix_ms() const;
  /// Removes and returns the keys that expired since the last call.
  std::vector<ApiKeyId> take_expired(std::int64_t unix_ms);
  /// Call it when the clock was set: keys that expired before may be valid now, and expire again.
  void expect_all_expiries();

 private:
  void expect_expiry(const journal::ApiKeyRow& key);

  std::map<ApiKeyId, journal::ApiKeyRow> keys_;
  std::map<ApiKeyId, IdleTime> idle_;  // not journaled: after a restart all count as idle
  std::map<TenantId, std::set<ApiKeyId>> by_tenant_;
  std::set<std::pair<std::int64_t, ApiKeyId>> expiries_;  // not returned by take_expired yet
  std::map<CallId, Unwritten> unwritten_;
  std::set<ApiKeyId> unwritten_revocations_;
};

}  // namespace leasehold
