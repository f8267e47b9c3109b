#include "broker/books/api_keys.hpp"

#include <fmt/format.h>

#include "ipc/control/tokens/api_key.hpp"

namespace leasehold {

Result<void> ApiKeys::add(const journal::ApiKeyRow& key) {
  if (of(key.tenant).size() >= kMaxPerTenant) {
    return fail(Errc::QuotaConcurrent,
                fmt::format("tenant {} has {} keys; revoke one with `brokerctl keys revoke`",
                            key.tenant.value, kMaxPerTenant));
  }
  if (!keys_.try_emplace(key.id, key).second)
    return fail(Errc::BadRequest, fmt::format("key {} exists; create another", key.id.value));
  return {};
}

std::optional<ApiKeys::Unwritten> ApiKeys::take_unwritten(CallId call) {
  const auto node = unwritten_.extract(call);
  return node.empty() ? std::nullopt : std::optional(node.mapped());
}

void ApiKeys::revoke(const ApiKeyId& id) {
  erase(id);
  unwritten_revocations_.insert(id);
}

const journal::ApiKeyRow* ApiKeys::find(const ApiKeyId& id) const {
  const auto found = keys_.find(id);
  return found == keys_.end() ? nullptr : &found->second;
}

/// Comparing hashes need not take constant time: a hash does not reveal its key.
Result<const journal::ApiKeyRow*> ApiKeys::verify(std::string_view shown) const {
  const std::string hash = hash_of_api_key(shown);
  const journal::ApiKeyRow* found = find(api_key_id(hash));
  if (found != nullptr && found->hash == hash) return found;
  return fail(Errc::BadToken,
              "the API key is not known, or was revoked; ask the operator for a new one");
}

std::vector<ApiKeyId> ApiKeys::of(const TenantId& tenant) const {
  std::vector<ApiKeyId> ids;
  for (const auto& [id, key] : keys_)
    if (key.tenant == tenant) ids.push_back(id);
  return ids;
}

}  // namespace leasehold
