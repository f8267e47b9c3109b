/// A cell in a modelled etcd, for the commands of `brokerctl cell`.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "tests/simulation/cell/modelled_etcd.hpp"
#include "tools/cell/admin/change.hpp"
#include "tools/cell/decide/ledger.hpp"
#include "tools/cell/decide/records.hpp"

namespace leasehold::cell {

inline const TenantId kAnn{"ann"};
inline const std::string kKey = "lh-" + std::string(64, '0');

/// A cell whose time passes only in waits. `on_wait` acts as hosts do meanwhile.
struct Cell {
  simulation::ModelledEtcd etcd;
  ManualClock clock;
  CellKeys keys{CellName{"c"}};
  std::function<void()> on_wait = [] {};
  int waits = 0;
  Calls calls{
      .keys = keys,
      .list = [this](const etcd::KeyRange& range) -> Result<etcd::RangeReply> {
        return etcd::RangeReply{.entries = etcd.read(range), .revision = etcd.revision()};
      },
      .commit = [this](const etcd::Transaction& transaction) -> Result<etcd::TransactionReply> {
        return etcd.execute(transaction);
      },
      .wait =
          [this](Duration time) {
            clock.advance(time);
            on_wait();
            return ++waits < 10'000;
          },
      .clock = &clock,
      .unix_ms = 1'000'000};

  etcd::Revision put(const std::string& key, const std::string& value) {
    return etcd.execute({.conditions = {}, .success = {etcd::Put{key, value}}, .failure = {}})
        .revision;
  }
  PartOwner join(const std::string& host) {
    const HostRecord record{.beat = {1}, .ttl_ms = 10'000};
    return {{host}, put(keys.host({host}), text_of(record).value())};
  }
  void beat(const PartOwner& owner) {
    const HostRecord record{.beat = {2}, .ttl_ms = 10'000};
    put(keys.host(owner.host), text_of(record).value());
  }
  /// The hosts have parts that have applied the policy as it is.
  void set_parts(const std::vector<PartOwner>& owners,
                 const Share& share = {.concurrent = 1, .blocks = 10}) {
    Ledger ledger;
    for (const PartOwner& owner : owners)
      ledger.parts.push_back(
          {.owner = owner,
           .share = share,
           .demand = {.concurrent = 1, .blocks = 10},
           .as_of = etcd.read(etcd::KeyRange::one(keys.tenant(kAnn))).front().modified,
           .instead_of = {}});
    put(keys.ledger(kAnn), text_of(ledger));
  }
  std::string value(const std::string& key) const {
    const auto found = etcd.read(etcd::KeyRange::one(key));
    return found.empty() ? "" : found.front().value;
  }
  ApiKeyId create_key() {
    REQUIRE(admit_tenant(calls, kAnn, {.concurrent = 4}, {}));
    REQUIRE(create_key_with({.name = "ci"}));
    return api_key_id(hash_of_api_key(kKey));
  }
  Result<Answer> create_key_with(const KeyChange& values) {
    return cell::create_key(calls, kAnn, values, kKey);
  }
  CellKey read(const ApiKeyId& key) const {
    return read_key(keys.key(key), value(keys.key(key))).value();
  }
};

inline std::string why_of(const Answer& answer, std::size_t row) {
  return answer.table.rows.at(row).back();
}

}  // namespace leasehold::cell
