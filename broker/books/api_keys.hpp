/// The API keys of tenants. Only hashes of the keys are stored.
///
/// Pure. Threads: one.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "broker/books/ids.hpp"
#include "broker/books/rows.hpp"

namespace leasehold {

class ApiKeys {
 public:
  static constexpr std::size_t kMaxPerTenant = 64;

  /// Errors: QuotaConcurrent for a tenant with kMaxPerTenant keys; BadRequest for a key that
  /// exists.
  Result<void> add(const journal::ApiKeyRow& key);
  void erase(const ApiKeyId& id) { keys_.erase(id); }
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
  /// key.
  Result<const journal::ApiKeyRow*> verify(std::string_view shown) const;
  std::vector<ApiKeyId> of(const TenantId& tenant) const;
  const std::map<ApiKeyId, journal::ApiKeyRow>& all() const { return keys_; }

 private:
  std::map<ApiKeyId, journal::ApiKeyRow> keys_;
  std::map<CallId, Unwritten> unwritten_;
  std::set<ApiKeyId> unwritten_revocations_;
};

}  // namespace leasehold
