#include "tools/cell/decide/records.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "ipc/control/messages/limits.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "tools/cell/decide/record_text.hpp"

namespace leasehold::cell {
namespace {

constexpr std::uint32_t kNewestVersion = 1;
constexpr std::int64_t kMaxSlackMs = 60'000;
constexpr std::size_t kMaxModels = 16;
constexpr Between<std::int64_t> kUnix_ms{0, wire::kLastExpiry_ms};
constexpr Between<std::uint32_t> kRequests{1, CellKey::kMostRequests};

/// Applies `combine` to each amount of two shares.
Share each(const Share& a, const Share& b, auto combine) {
  return {.concurrent = combine(a.concurrent, b.concurrent),
          .blocks = combine(a.blocks, b.blocks),
          .reserved = combine(a.reserved, b.reserved),
          .tokens_per_minute = combine(a.tokens_per_minute, b.tokens_per_minute)};
}

std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t whole = std::uint64_t{a} + b;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(whole, std::numeric_limits<std::uint32_t>::max()));
}

std::uint32_t rest(std::uint32_t from, std::uint32_t less) {
  return from > less ? from - less : 0;
}

}  // namespace

void describe(Is<CellConfig> auto& config, auto& fields) {
  fields.field("version", config.version, Between<std::uint32_t>{1, kNewestVersion});
  fields.field("ttl_ms", config.ttl_ms, Between<std::int64_t>{0, CellConfig::kMaxTtlMs});
  fields.field("slack_ms", config.slack_ms, Between<std::int64_t>{0, kMaxSlackMs});
  fields.with_default("moves", config.moves, MovePolicy::Overlap, EnumCount{kMovePolicyCount});
}

void describe(Is<OfferedModel> auto& model, auto& fields) {
  fields.field("name", model.name, TextRule::Label);
  fields.field("identity", model.identity);
}

void describe(Is<HostRecord> auto& host, auto& fields) {
  fields.field("beat", host.beat);
  fields.field("ttl_ms", host.ttl_ms, Between<std::int64_t>{0, CellConfig::kMaxTtlMs});
  fields.with_default("doors", host.doors, {}, MaxItems{HostRecord::kMaxDoors}, TextRule::Label);
  fields.with_default("models", host.models, {}, MaxItems{kMaxModels});
  fields.with_default("more_models", host.has_more_models, false);
  fields.with_default("free_blocks", host.free_blocks, 0u);
  fields.with_default("draining", host.is_draining, false);
  fields.with_default("audit_head", host.audit_head, std::string(), TextRule::Label);
}

void describe(Is<WantedHost> auto& wanted, auto& fields) {
  fields.with_default("drain", wanted.is_draining, false);
}

void describe(Is<CellPolicy> auto& policy, auto& fields) {
  fields.field("limits", policy.limits);
  fields.with_default("max_adapters", policy.adapters.count, 0u, wire::kAdapters);
  fields.with_default("max_adapter_bytes", policy.adapters.bytes, std::uint64_t{0},
                      wire::kAdapterBytes);
}

void describe(Is<CellKey> auto& key, auto& fields) {
  fields.field("hash", key.hash, TextRule::HexKey);
  fields.field("tenant", key.tenant);
  fields.with_default("name", key.name, std::string(), TextRule::NameOrEmpty);
  fields.with_default("created_unix_ms", key.created_unix_ms, std::int64_t{0}, kUnix_ms);
  fields.field("expires_unix_ms", key.expires_unix_ms, kUnix_ms);
  fields.field("max_concurrent", key.limits.max_concurrent, kRequests);
  fields.field("tokens_per_minute", key.limits.rates.tokens_per_minute, wire::kPerMinute);
  fields.field("requests_per_minute", key.limits.rates.requests_per_minute, wire::kPerMinute);
}

std::string_view name(MovePolicy policy) {
  switch (policy) {
    case MovePolicy::Overlap:
      return "overlap";
    case MovePolicy::Strict:
      return "strict";
  }
  std::unreachable();
}

bool Share::fits(const Share& limit) const {
  return smaller(*this, limit) == *this;
}

Share operator+(const Share& a, const Share& b) {
  return each(a, b, sum);
}

Share without(const Share& from, const Share& less) {
  return each(from, less, rest);
}

Share smaller(const Share& a, const Share& b) {
  return each(a, b, [](std::uint32_t x, std::uint32_t y) { return std::min(x, y); });
}

Share greater(const Share& a, const Share& b) {
  return each(a, b, [](std::uint32_t x, std::uint32_t y) { return std::max(x, y); });
}

std::string to_string(const Share& share) {
  return fmt::format("{} requests, {} blocks ({} reserved), {} tokens a minute", share.concurrent,
                     share.blocks, share.reserved, share.tokens_per_minute);
}

/// A TTL below the minimum would expire hosts that wait for a slow disk of etcd.
Result<CellConfig> read_config(std::string_view key, std::string_view value) {
  const CellConfig config = TRY(read_record<CellConfig>(key, value));
  if (config.ttl_ms == 0 || config.ttl_ms >= CellConfig::kMinTtlMs) return config;
  return fail(Errc::BadRequest,
              fmt::format("the value of {} in etcd is wrong: ttl_ms is {}; use 0 or {} to {}", key,
                          config.ttl_ms, CellConfig::kMinTtlMs, CellConfig::kMaxTtlMs));
}

Result<HostRecord> read_host(std::string_view key, std::string_view value) {
  return read_record<HostRecord>(key, value);
}

Result<WantedHost> read_wanted(std::string_view key, std::string_view value) {
  return read_record<WantedHost>(key, value);
}

Result<CellPolicy> read_policy(std::string_view key, std::string_view value) {
  return read_record<CellPolicy>(key, value);
}

Result<CellKey> read_key(std::string_view key, std::string_view value) {
  CellKey record = TRY(read_record<CellKey>(key, value));
  if (key.ends_with("/" + api_key_id(record.hash).value)) return record;
  return fail(Errc::BadRequest,
              fmt::format("the value of {} in etcd is wrong: its hash is of another key; {}", key,
                          kCorrectRecord));
}

std::string text_of(const CellConfig& config) {
  return record_text(config);
}

std::string text_of(const WantedHost& wanted) {
  return record_text(wanted);
}

std::string text_of(const CellPolicy& policy) {
  return record_text(policy);
}

std::string text_of(const CellKey& key) {
  return record_text(key);
}

HostRecord fitted(HostRecord host) {
  if (host.models.size() > kMaxModels) {
    host.models.resize(kMaxModels);
    host.has_more_models = true;
  }
  while (!host.models.empty() && record_text(host).size() > HostRecord::kMaxBytes) {
    host.models.pop_back();
    host.has_more_models = true;
  }
  return host;
}

Result<std::string> text_of(const HostRecord& host) {
  std::string text = record_text(host);
  if (text.size() <= HostRecord::kMaxBytes) return text;
  return fail(Errc::MessageTooLarge,
              fmt::format("the record of this host has {} bytes, and at most {} are allowed; give "
                          "it fewer or shorter doors",
                          text.size(), HostRecord::kMaxBytes));
}

}  // namespace leasehold::cell
