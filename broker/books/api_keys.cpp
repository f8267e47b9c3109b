#include "broker/books/api_keys.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "ipc/control/tokens/api_key.hpp"

namespace leasehold {
namespace {

constexpr std::int64_t kMsPerMinute = 60'000;

std::unexpected<Error> expired(const journal::ApiKeyRow& key) {
  const std::string name = key.name.empty() ? "" : fmt::format(" ({})", key.name);
  return fail(Errc::BadToken,
              fmt::format("the API key {}{} expired at {:%Y-%m-%dT%H:%M:%SZ}; ask the operator to "
                          "prolong it (`keys update`), or for a new one",
                          key.id.value, name, fmt::gmtime(key.expires_unix_ms / 1000)));
}

std::unexpected<Error> unknown_key() {
  return fail(Errc::BadToken,
              "the API key is not known, or was revoked; ask the operator for a new one");
}

std::optional<std::int64_t> unless_zero(std::int64_t unix_ms) {
  return unix_ms == 0 ? std::nullopt : std::optional(unix_ms);
}

}  // namespace

wire::KeyView view_of(const journal::ApiKeyRow& key, const WallClock& wall, TimePoint now) {
  return {.key = key.id,
          .tenant = key.tenant,
          .name = key.name,
          .created_unix_ms = key.created_unix_ms,
          .expires_unix_ms = unless_zero(key.expires_unix_ms),
          .expired = is_expired(key, wall.unix_ms(now)),
          .last_used_unix_ms = unless_zero(key.last_used_unix_ms),
          .tokens_today = key.use.tokens_on(wall.day(now)),
          .limits = key.limits};
}

Result<void> ApiKeys::add(const journal::ApiKeyRow& key, TimePoint now) {
  if (keys_.contains(key.id))
    return fail(
        Errc::BadRequest,
        fmt::format("this broker has the key {} already; see `brokerctl keys`", key.id.value));
  if (of(key.tenant).size() >= kMaxPerTenant) {
    return fail(Errc::QuotaConcurrent,
                fmt::format("tenant {} has {} keys; revoke one with `brokerctl keys revoke`",
                            key.tenant.value, kMaxPerTenant));
  }
  keys_.emplace(key.id, key);
  idle_.emplace(key.id, IdleTime(now));
  by_tenant_[key.tenant].insert(key.id);
  expect_expiry(key);
  return {};
}

void ApiKeys::erase(const ApiKeyId& id) {
  const auto found = keys_.find(id);
  if (found == keys_.end()) return;
  const auto keys = by_tenant_.find(found->second.tenant);
  keys->second.erase(id);
  if (keys->second.empty()) by_tenant_.erase(keys);
  expiries_.erase({found->second.expires_unix_ms, id});
  idle_.erase(id);
  keys_.erase(found);
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
Result<const journal::ApiKeyRow*> ApiKeys::verify(std::string_view shown,
                                                  std::int64_t unix_ms) const {
  const std::string hash = hash_of_api_key(shown);
  const journal::ApiKeyRow* found = find(api_key_id(hash));
  if (found == nullptr || found->hash != hash) return unknown_key();
  if (is_expired(*found, unix_ms)) return expired(*found);
  return found;
}

Result<const journal::ApiKeyRow*> ApiKeys::verify_batch_key(std::string_view shown,
                                                            std::int64_t unix_ms) const {
  const auto id = key_of_batch_key(shown);
  const journal::ApiKeyRow* found = id ? find(*id) : nullptr;
  if (found == nullptr || batch_key_of_hash(found->hash) != shown) return unknown_key();
  if (is_expired(*found, unix_ms)) return expired(*found);
  return found;
}

const std::set<ApiKeyId>& ApiKeys::of(const TenantId& tenant) const {
  static const std::set<ApiKeyId> kNone;
  const auto found = by_tenant_.find(tenant);
  return found == by_tenant_.end() ? kNone : found->second;
}

void ApiKeys::update(const journal::ApiKeyRow& changed) {
  journal::ApiKeyRow& key = keys_.at(changed.id);
  expiries_.erase({key.expires_unix_ms, key.id});
  key.name = changed.name;
  key.expires_unix_ms = changed.expires_unix_ms;
  key.limits = changed.limits;
  expect_expiry(key);
}

void ApiKeys::count(const ApiKeyId& id, std::uint64_t tokens, const WallClock& wall,
                    TimePoint now) {
  const auto found = keys_.find(id);
  if (found == keys_.end()) return;
  const std::int64_t unix_ms = wall.unix_ms(now);
  found->second.last_used_unix_ms = unix_ms - unix_ms % kMsPerMinute;
  found->second.use.add(tokens, wall.day(now));
}

IdleTime* ApiKeys::idle_time(const ApiKeyId& id) {
  const auto found = idle_.find(id);
  return found == idle_.end() ? nullptr : &found->second;
}

std::optional<std::int64_t> ApiKeys::next_expiry_unix_ms() const {
  if (expiries_.empty()) return std::nullopt;
  return expiries_.begin()->first;
}

std::vector<ApiKeyId> ApiKeys::take_expired(std::int64_t unix_ms) {
  std::vector<ApiKeyId> expired;
  while (!expiries_.empty() && expiries_.begin()->first <= unix_ms)
    expired.push_back(expiries_.extract(expiries_.begin()).value().second);
  return expired;
}

void ApiKeys::expect_all_expiries() {
  for (const auto& [id, key] : keys_) expect_expiry(key);
}

void ApiKeys::expect_expiry(const journal::ApiKeyRow& key) {
  if (key.expires_unix_ms != 0) expiries_.emplace(key.expires_unix_ms, key.id);
}

}  // namespace leasehold
