// The commands of `brokerctl cell`, against a modelled etcd.
#include <catch2/catch.hpp>
#include <functional>

#include "common/clock.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "tests/simulation/cell/modelled_etcd.hpp"
#include "tools/cell/admin/change.hpp"
#include "tools/cell/admin/show.hpp"
#include "tools/cell/decide/ledger.hpp"
#include "tools/cell/decide/records.hpp"

using namespace leasehold;
using namespace leasehold::cell;
using Catch::Contains;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const TenantId kAnn{"ann"};
const std::string kKey = "lh-" + std::string(64, '0');

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
      .clock = &clock};

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
  void set_parts(const std::vector<PartOwner>& owners) {
    Ledger ledger;
    for (const PartOwner& owner : owners)
      ledger.parts.push_back(
          {.owner = owner,
           .share = {.concurrent = 1, .blocks = 10},
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
    REQUIRE(create_key_named("ci"));
    return api_key_id(hash_of_api_key(kKey));
  }
  Result<Answer> create_key_named(const std::string& name) {
    return cell::create_key(calls, kAnn, name, kKey);
  }
};

std::string why_of(const Answer& answer, std::size_t row) {
  return answer.table.rows.at(row).back();
}

}  // namespace

TEST_CASE("cell admin: a revocation is done when every host has applied it, and says so") {
  Cell cell;
  const ApiKeyId key = cell.create_key();
  const PartOwner a = cell.join("a"), b = cell.join("b");
  cell.set_parts({a, b});
  cell.on_wait = [&] {
    CHECK(cell.value(cell.keys.mail({"a"}, kAnn)) != "");
    cell.set_parts({a, b});
  };
  const auto revoked = revoke_key(cell.calls, key, Wait(seconds(60)));
  REQUIRE(revoked);
  CHECK(cell.value(cell.keys.key(key)).empty());
  CHECK(cell.waits == 1);
  CHECK(revoked->table.rows.size() == 2);
  CHECK(why_of(*revoked, 0) == "applied");
  CHECK(why_of(*revoked, 1) == "applied");
}

TEST_CASE("cell admin: a host that is cut off is expired by the rule, and not sooner") {
  Cell cell;
  const ApiKeyId key = cell.create_key();
  const PartOwner a = cell.join("a"), b = cell.join("b");
  cell.set_parts({a, b});
  const TimePoint begin = cell.clock.now();
  std::optional<Duration> expired;
  cell.on_wait = [&] {
    if (cell.waits == 0) {
      Ledger ledger = read_ledger("ledger", cell.value(cell.keys.ledger(kAnn))).value();
      ledger.parts.front().as_of = cell.etcd.revision();  // a applies it
      cell.put(cell.keys.ledger(kAnn), text_of(ledger));
    }
    if (!expired && cell.value(cell.keys.host({"b"})).empty()) expired = cell.clock.now() - begin;
  };
  const auto revoked = revoke_key(cell.calls, key, Wait(seconds(60)));
  REQUIRE(revoked);
  CHECK(why_of(*revoked, 0) == "applied");
  CHECK_THAT(why_of(*revoked, 1), Contains("expired 0.0 s ago"));
  REQUIRE(expired);
  CHECK(*expired > milliseconds(11'110));  // (TTL + slack) · 1.01
  CHECK(*expired <= milliseconds(11'200));
  CHECK(!cell.value(cell.keys.host({"a"})).empty());
}

TEST_CASE("cell admin: a wait that ends too early says when the host stops by itself") {
  Cell cell;
  const ApiKeyId key = cell.create_key();
  cell.set_parts({cell.join("b")});
  const auto revoked = revoke_key(cell.calls, key, Wait(seconds(8)));
  REQUIRE(!revoked);
  CHECK(revoked.error().code == Errc::TimedOut);
  CHECK_THAT(revoked.error().detail, Contains("b cut off: stops by itself in 4 s at the latest") &&
                                         Contains("brokerctl cell ledger ann"));
  CHECK(cell.value(cell.keys.key(key)).empty());  // it is revoked all the same
}

TEST_CASE("cell admin: a host that beats and has not applied a change is not called cut off") {
  Cell cell;
  const ApiKeyId key = cell.create_key();
  const PartOwner b = cell.join("b");
  cell.set_parts({b});
  cell.on_wait = [&] {
    if (cell.waits % 100 == 0) cell.beat(b);
  };
  const auto revoked = revoke_key(cell.calls, key, Wait(seconds(20)));
  REQUIRE(!revoked);
  CHECK_THAT(revoked.error().detail, Contains("b has not applied it yet"));
}

TEST_CASE("cell admin: a wait that fails says that the change is written") {
  Cell cell;
  const ApiKeyId key = cell.create_key();
  cell.set_parts({cell.join("a")});
  cell.on_wait = [&] { cell.put(cell.keys.ledger(kAnn), "{"); };
  const auto revoked = revoke_key(cell.calls, key, Wait(seconds(60)));
  REQUIRE(!revoked);
  CHECK(revoked.error().code == Errc::BadRequest);
  CHECK_THAT(revoked.error().detail, Contains("the change is written") && Contains("ledger ann"));
  CHECK(cell.value(cell.keys.key(key)).empty());
}

TEST_CASE("cell admin: an admission keeps the limits that it does not name") {
  Cell cell;
  REQUIRE(admit_tenant(cell.calls, kAnn, {.concurrent = 4, .blocks = 100}, {}));
  REQUIRE(admit_tenant(cell.calls, kAnn, {.concurrent = 8}, {}));
  const auto policy = read_policy("k", cell.value(cell.keys.tenant(kAnn))).value();
  CHECK(policy.limits.concurrent == 8);
  CHECK(policy.limits.blocks == 100);
  CHECK(policy.limits.tokens_per_minute > 0);
  const auto wrong = admit_tenant(cell.calls, kAnn, {.reserved = 101}, {});
  REQUIRE(!wrong);
  CHECK(wrong.error().code == Errc::BadRequest);
  REQUIRE(remove_tenant(cell.calls, kAnn, {}));
  CHECK(read_policy("k", cell.value(cell.keys.tenant(kAnn)))->limits.is_zero());
}

TEST_CASE("cell admin: what does not exist is named, with the command that lists what does") {
  Cell cell;
  const auto detail = [](const Result<Answer>& answer) {
    REQUIRE(!answer);
    return answer.error().detail;
  };
  CHECK_THAT(detail(cell.create_key_named("")), Contains("cell tenants"));
  CHECK_THAT(detail(remove_tenant(cell.calls, kAnn, {})), Contains("cell tenants"));
  CHECK_THAT(detail(show_ledger(cell.calls, kAnn)), Contains("cell tenants"));
  CHECK_THAT(detail(revoke_key(cell.calls, {"0011223344556677"}, {})), Contains("cell keys"));
  CHECK_THAT(detail(drain_host(cell.calls, {"h"}, true)), Contains("cell hosts"));
  CHECK_THAT(detail(expire_host(cell.calls, {"h"})), Contains("cell hosts"));
}

TEST_CASE(
    "cell admin: a ledger that was edited by hand is refused and named, and nothing is written") {
  Cell cell;
  const ApiKeyId key = cell.create_key();
  cell.put(cell.keys.ledger(kAnn), R"({"parts":[{"host":"a","incarnation":"many"}]})");
  const etcd::Revision before = cell.etcd.revision();
  for (const auto& answer : {revoke_key(cell.calls, key, {}), show_ledger(cell.calls, kAnn),
                             admit_tenant(cell.calls, kAnn, {.concurrent = 9}, {})}) {
    REQUIRE(!answer);
    CHECK(answer.error().code == Errc::BadRequest);
    CHECK_THAT(answer.error().detail, Contains("/leasehold/c/ledger/ann"));
  }
  CHECK(cell.etcd.revision() == before);
  const Answer examined = examine(cell.calls).value();
  CHECK(examined.exit_code == 1);
  CHECK_THAT(examined.notes.at(0), Contains("/leasehold/c/ledger/ann"));
}

TEST_CASE("cell admin: doctor finds parts that are together above the limits") {
  Cell cell;
  (void)cell.create_key();
  CHECK(examine(cell.calls)->exit_code == 0);
  std::vector<PartOwner> owners;
  for (const char* host : {"a", "b", "c", "d", "e"}) owners.push_back(cell.join(host));
  cell.set_parts(owners);
  const Answer examined = examine(cell.calls).value();
  CHECK(examined.exit_code == 1);
  CHECK_THAT(examined.notes.at(0), Contains("tenant ann: its parts are 5 requests"));
}

TEST_CASE("cell admin: a host is drained by a key, and expired only while it is silent") {
  Cell cell;
  const PartOwner a = cell.join("a");
  REQUIRE(drain_host(cell.calls, a.host, true));
  CHECK(read_wanted("k", cell.value(cell.keys.wanted(a.host)))->is_draining);
  auto calls = cell.calls;
  bool has_beaten = false;
  calls.commit = [&](const etcd::Transaction& transaction) {
    if (!std::exchange(has_beaten, true)) cell.beat(a);
    return cell.calls.commit(transaction);
  };
  const auto alive = expire_host(calls, a.host);
  REQUIRE(!alive);
  CHECK(alive.error().code == Errc::IllegalTransition);
  REQUIRE(expire_host(cell.calls, a.host));
  CHECK(cell.value(cell.keys.host(a.host)).empty());
}
