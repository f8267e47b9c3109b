/// The values of a cell's keys, except the ledger (ledger.hpp).
///
/// Values are JSON objects. Operators edit some of them by hand, so all are read as input: an error
/// names the key, the field and the value. Unknown fields are ignored, so that a newer version can
/// add some. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.hpp"
#include "common/result.hpp"
#include "ipc/control/messages/keys.hpp"
#include "ipc/control/tokens/text_identity.hpp"
#include "tools/cell/decide/names.hpp"

namespace leasehold::cell {

/// What happens while a text has moved and its earlier host may still run.
enum class MovePolicy : std::uint8_t {
  Overlap,  ///< The new host uses the limits that the earlier one has (see ledger.hpp).
  Strict,   ///< The text waits for free limits.
};
inline constexpr int kMovePolicyCount = 2;
std::string_view name(MovePolicy policy);

/// `config`: terms of the whole cell.
struct CellConfig {
  static constexpr std::int64_t kMinTtlMs = 1'000;
  static constexpr std::int64_t kMaxTtlMs = 600'000;

  std::uint32_t version = 1;
  /// How long a host may run after the sending of its newest beat. Zero: without a limit; then only
  /// an operator expires hosts.
  std::int64_t ttl_ms = 30'000;
  std::int64_t slack_ms = 1'000;  ///< Added to the TTL before a silent host is expired.
  MovePolicy moves = MovePolicy::Overlap;

  Duration ttl() const { return std::chrono::milliseconds(ttl_ms); }
  Duration slack() const { return std::chrono::milliseconds(slack_ms); }
  bool operator==(const CellConfig&) const = default;
};

/// A model that a host serves.
struct OfferedModel {
  std::string name;
  TextIdentity identity;
  bool operator==(const OfferedModel&) const = default;
};

/// `hosts/H`: one beat, by which gateways know the host:
///
///     {"beat": "81…", "ttl_ms": 30000, "doors": ["http://10.0.0.5:8080"],
///      "models": [{"name": "m", "identity": "sha256:…/int8/f16/4"}], "free_blocks": 812,
///      "draining": true, "audit_head": "17:9f86…"}
///
/// Its incarnation is the create revision of the key. A host runs under its TTL, not under that of
/// a later CellConfig. All but `beat` and `ttl_ms` are what the host last learned from its broker:
/// a gateway still asks each door for its readiness and its load.
struct HostRecord {
  /// Each beat of each host is written to every member of etcd and sent to every gateway.
  static constexpr std::size_t kMaxBytes = 512;
  static constexpr std::size_t kMaxDoors = 8;

  BeatId beat;
  std::int64_t ttl_ms = 0;         ///< See CellConfig.
  std::vector<std::string> doors;  ///< Addresses of its workers in the form of a gateway's `hosts`.
  std::vector<OfferedModel> models;  ///< What its ready workers serve, by name.
  bool has_more_models = false;      ///< `models` lacks those that do not fit into kMaxBytes.
  std::uint32_t free_blocks = 0;     ///< KV blocks that its broker can lease at once.
  /// The host takes no new text, and its running ones should continue elsewhere.
  bool is_draining = false;
  /// Head of its broker's audit chain: the sequence number, ":" and the first 32 digits of the
  /// hash. Empty: the broker keeps none.
  std::string audit_head;

  Duration ttl() const { return std::chrono::milliseconds(ttl_ms); }
  bool operator==(const HostRecord&) const = default;
};

/// `wanted/H`: what an operator wants of a host.
struct WantedHost {
  bool is_draining = false;
  bool operator==(const WantedHost&) const = default;
};

/// Amounts that hosts may use of a tenant's limits, or the limits themselves.
struct Share {
  std::uint32_t concurrent = 0;
  std::uint32_t blocks = 0;
  std::uint32_t reserved = 0;
  std::uint32_t tokens_per_minute = 0;

  bool is_zero() const { return *this == Share(); }
  /// True if no amount is greater than that of `limit`.
  bool fits(const Share& limit) const;
  bool operator==(const Share&) const = default;
};

Share operator+(const Share& a, const Share& b);      ///< Stops at the greatest number.
Share without(const Share& from, const Share& less);  ///< Stops at zero.
Share smaller(const Share& a, const Share& b);        ///< The smaller of each amount.
Share greater(const Share& a, const Share& b);        ///< The greater of each amount.
std::string to_string(const Share& share);

/// What each host lets a tenant load of its adapters, which are registered on each host.
struct AdapterLimits {
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;
  bool operator==(const AdapterLimits&) const = default;
};

/// `tenants/T`: the limits over all hosts. A revoked tenant keeps its key, with limits of zero.
struct CellPolicy {
  Share limits;
  AdapterLimits adapters;  ///< May be missing.
  bool operator==(const CellPolicy&) const = default;
};

/// `keys/ID`: an API key. Only its holder has the key itself.
struct CellKey {
  static constexpr std::uint32_t kMostRequests = 1u << 30;  ///< Limit of KeyLimits::max_concurrent.

  std::string hash;  ///< hash_of_api_key; ID is its api_key_id.
  TenantId tenant;
  std::string name;                  ///< Shown in lists; may be empty.
  std::int64_t created_unix_ms = 0;  ///< By the clock of the operator's machine; 0: not known.
  /// Each host compares it with its own clock. Before the year 2200; empty: never.
  std::optional<std::int64_t> expires_unix_ms;
  /// Over all hosts. Without tokens_per_day: no host knows what others have counted.
  wire::KeyLimits limits;
  bool operator==(const CellKey&) const = default;
};

/// Errors: BadRequest, which names `key` and the field.
Result<CellConfig> read_config(std::string_view key, std::string_view value);
Result<HostRecord> read_host(std::string_view key, std::string_view value);
Result<WantedHost> read_wanted(std::string_view key, std::string_view value);
Result<CellPolicy> read_policy(std::string_view key, std::string_view value);
/// Errors: also BadRequest for a hash that is not of the id in `key`.
Result<CellKey> read_key(std::string_view key, std::string_view value);
std::string text_of(const CellConfig& config);
std::string text_of(const WantedHost& wanted);
std::string text_of(const CellPolicy& policy);
std::string text_of(const CellKey& key);
/// Leaves out the last models until the text fits into kMaxBytes.
HostRecord fitted(HostRecord host);
/// Errors: MessageTooLarge above kMaxBytes.
Result<std::string> text_of(const HostRecord& host);

}  // namespace leasehold::cell
