// API keys.
#include "ipc/control/messages/keys.hpp"

#include "ipc/control/messages/codec.hpp"
#include "ipc/control/messages/limits.hpp"
#include "ipc/control/messages/rate_fields.hpp"

namespace leasehold::wire {
namespace {

constexpr auto kKeyLimits = [](auto& m, auto& fields) {
  fields.field("max_concurrent", m.max_concurrent, kConcurrent);
  kRateLimits(m.rates, fields);
};

constexpr std::string_view kRemovable[] = {"max_concurrent", "tokens_per_minute",
                                           "requests_per_minute", "tokens_per_day"};

}  // namespace

void describe(Is<KeyCreate> auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
  fields.field("hash", m.hash, TextRule::HexKey);
  fields.with_default("name", m.name, std::string(), TextRule::NameOrEmpty);
  fields.field("expires_unix_ms", m.expires_unix_ms, kExpiry_ms);
  kKeyLimits(m.limits, fields);
  fields.field("request_id", m.request_id);
}

void describe(Is<KeyUpdate> auto& m, auto& fields) {
  fields.field("key", m.key);
  fields.field("name", m.name, TextRule::NameOrEmpty);
  fields.field("expires_unix_ms", m.expires_unix_ms, kExpiry_ms);
  fields.with_default("never_expires", m.never_expires, false);
  kKeyLimits(m.limits, fields);
  fields.with_default("removes", m.removes, {}, MaxItems{std::size(kRemovable)},
                      Choice{kRemovable});
  fields.field("request_id", m.request_id);
}

static Result<void> validate(const KeyUpdate& m) {
  if (!m.expires_unix_ms || !m.never_expires) return {};
  return fail(Errc::BadRequest, "expected at most one of 'expires_unix_ms' and 'never_expires'");
}

void describe(Is<KeyRevoke> auto& m, auto& fields) {
  fields.field("key", m.key);
  fields.field("request_id", m.request_id);
}

void describe(Is<KeyCheck> auto& m, auto& fields) {
  fields.field("api_key", m.api_key, TextRule::Sentence);
}

void describe(Is<KeyOwner> auto& m, auto& fields) {
  fields.field("key", m.key);
  fields.field("tenant", m.tenant);
  fields.field("tenant_admitted_unix_ms", m.tenant_admitted_unix_ms);
}

void describe(Is<TenantAdmission> auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
  fields.field("admitted_unix_ms", m.admitted_unix_ms);
}

void describe(Is<TenantCheck> auto& m, auto& fields) {
  fields.field("tenants", m.tenants, MaxItems{TenantCheck::kMaxTenants});
}

void describe(Is<KeyList> auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
  fields.field("after", m.after);
  fields.with_default("limit", m.limit, kPageItems.high, kPageItems);
}

void describe(Is<KeyView> auto& m, auto& fields) {
  fields.field("key", m.key);
  fields.field("tenant", m.tenant);
  fields.field("name", m.name, TextRule::NameOrEmpty);
  fields.field("created_unix_ms", m.created_unix_ms);
  fields.field("expires_unix_ms", m.expires_unix_ms);
  fields.field("expired", m.expired);
  fields.field("last_used_unix_ms", m.last_used_unix_ms);
  fields.field("tokens_today", m.tokens_today);
  kKeyLimits(m.limits, fields);
}

template struct Message<KeyCreate>;
template struct Message<KeyUpdate>;
template struct Message<KeyRevoke>;
template struct Message<KeyCheck>;
template struct Message<KeyOwner>;
template struct Message<TenantCheck>;
template struct Message<KeyList>;
template struct Message<KeyView>;

}  // namespace leasehold::wire
