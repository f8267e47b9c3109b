// The commands of `brokerctl cell`, against a modelled etcd.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "common/clock.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "tests/simulation/cell/modelled_etcd.hpp"
#include "tools/cell/admin/change.hpp"
#include "tools/cell/admin/roles.hpp"
#include "tools/cell/admin/show.hpp"
#include "tools/cell/decide/ledger.hpp"
#include "tools/cell/decide/records.hpp"
#include "tools/cell/decide/revoked_key.hpp"

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
  std::string shown;
  cell.calls.progress = [&](const std::string& text) {
    if (cell.clock.now() - begin > seconds(8)) shown = text;
  };
  const auto revoked = revoke_key(cell.calls, key, Wait(seconds(60)));
  REQUIRE(revoked);
  CHECK_THAT(shown, Contains("waiting for: b cut off: stops by itself in") && !Contains("a "));
  CHECK(why_of(*revoked, 0) == "applied");
  CHECK_THAT(why_of(*revoked, 1), Contains("expired 0.0 s ago"));
  REQUIRE(expired);
  CHECK(*expired > milliseconds(11'110));  // (TTL + slack) · 1.01
  CHECK(*expired <= milliseconds(11'150));
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
    if (cell.waits % 4 == 0) cell.beat(b);
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
  CHECK_THAT(detail(cell.create_key_with({})), Contains("cell tenants"));
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

TEST_CASE("cell admin: a key has name, expiry and limits, which an update changes on every host") {
  Cell cell;
  const ApiKeyId key = cell.create_key();
  const PartOwner a = cell.join("a");
  cell.set_parts({a});
  cell.on_wait = [&] {
    CHECK(cell.value(cell.keys.mail({"a"}, kAnn)) != "");
    cell.set_parts({a});
  };
  const KeyChange limited{.name = "batch",
                          .expires_unix_ms = 2'000'000,
                          .limits = {.max_concurrent = 3, .rates = {.tokens_per_minute = 500}}};
  const auto updated = update_key(cell.calls, key, limited, Wait(seconds(60)));
  REQUIRE(updated);
  CHECK(why_of(*updated, 0) == "applied");
  CHECK(cell.waits == 1);
  CHECK(cell.read(key).name == "batch");
  CHECK(cell.read(key).created_unix_ms == 1'000'000);
  CHECK(cell.read(key).expires_unix_ms == 2'000'000);
  CHECK(cell.read(key).limits == limited.limits);

  const KeyChange lifted{.never_expires = true, .removes = {"max_concurrent"}};
  REQUIRE(update_key(cell.calls, key, lifted, {}));
  CHECK(cell.read(key).name == "batch");
  CHECK(!cell.read(key).expires_unix_ms);
  CHECK(!cell.read(key).limits.max_concurrent);
  CHECK(cell.read(key).limits.rates.tokens_per_minute == 500u);
}

TEST_CASE("cell admin: keys are listed with their expiry and limits, all or those of a tenant") {
  Cell cell;
  (void)cell.create_key();
  REQUIRE(admit_tenant(cell.calls, {"bob"}, {}, {}));
  const KeyChange values{.expires_unix_ms = 1'500'000, .limits = {.max_concurrent = 1}};
  REQUIRE(create_key(cell.calls, {"bob"}, values, "lh-" + std::string(64, '1')));
  CHECK(show_keys(cell.calls)->table.rows.size() == 2);
  cell.calls.unix_ms = 1'500'000;
  const Answer bobs = show_keys(cell.calls, TenantId{"bob"}).value();
  REQUIRE(bobs.table.rows.size() == 1);
  const nlohmann::json item = bobs.document.at("items").at(0);
  CHECK(item.at("expired") == true);
  CHECK(item.at("max_concurrent") == 1);
  CHECK(item.at("created_unix_ms") == 1'000'000);
  CHECK(show_keys(cell.calls, TenantId{"eve"}).error().code == Errc::UnknownTenant);
}

TEST_CASE(
    "cell admin: a key with an expiry that has passed or limits above its tenant's is not made") {
  Cell cell;
  const ApiKeyId key = cell.create_key();
  const CellKey before = cell.read(key);
  const std::pair<KeyChange, const char*> wrong[] = {
      {{.expires_unix_ms = 1'000'000}, "has passed"},
      {{.limits = {.max_concurrent = 5}}, "max_concurrent is 5, but the tenant has 4"}};
  for (const auto& [change, why] : wrong) {
    for (const auto& answer :
         {cell.create_key_with(change), update_key(cell.calls, key, change, {})}) {
      REQUIRE(!answer);
      CHECK(answer.error().code == Errc::BadRequest);
      CHECK_THAT(answer.error().detail, Contains(why));
    }
  }
  CHECK(cell.read(key) == before);
}

TEST_CASE("cell admin: a revocation that was interrupted is repeated with the same result") {
  Cell cell;
  const ApiKeyId key = cell.create_key();
  const PartOwner a = cell.join("a"), b = cell.join("b");
  cell.set_parts({a, b});
  cell.calls.wait = [](Duration) { return false; };  // the user interrupts
  REQUIRE(!revoke_key(cell.calls, key, Wait(seconds(60))));
  REQUIRE(cell.value(cell.keys.key(key)).empty());
  const etcd::Revision revoked = cell.etcd.revision();

  cell.calls.wait = [&](Duration time) {
    cell.clock.advance(time);
    cell.set_parts({a});
    return ++cell.waits < 10;
  };
  for (int round = 0; round < 2; ++round) {
    const auto again = revoke_key(cell.calls, key, Wait(seconds(60)));
    REQUIRE(again);
    CHECK(again->document.at("key") == key.value);
    REQUIRE(again->table.rows.size() == 2);
    CHECK(why_of(*again, 0) == "applied");
    CHECK(why_of(*again, 1) == "returned its part");
  }
  CHECK(cell.waits == 1);
  CHECK(cell.etcd.read(etcd::KeyRange::one(cell.keys.tenant(kAnn))).front().modified == revoked);
}

TEST_CASE("cell admin: a removal that is repeated waits for the hosts, and changes nothing") {
  Cell cell;
  (void)cell.create_key();
  const PartOwner a = cell.join("a");
  cell.set_parts({a});
  REQUIRE(remove_tenant(cell.calls, kAnn, {}));
  const etcd::Revision removed = cell.etcd.revision();
  const auto early = remove_tenant(cell.calls, kAnn, Wait(milliseconds(100)));
  REQUIRE(!early);
  CHECK_THAT(early.error().detail, Contains("a has not applied it yet"));
  CHECK(cell.etcd.revision() == removed);
  cell.set_parts({a}, {});
  const auto again = remove_tenant(cell.calls, kAnn, Wait(seconds(60)));
  REQUIRE(again);
  CHECK(why_of(*again, 0) == "applied");
}

TEST_CASE("cell admin: records of revoked keys are deleted after days, by later revocations") {
  Cell cell;
  const ApiKeyId key = cell.create_key();
  const ApiKeyId old{key.value.substr(0, 2) + "00000000000000"};
  const ApiKeyId young{key.value.substr(0, 2) + "00000000000001"};
  cell.calls.unix_ms = milliseconds(std::chrono::days(8)).count();
  cell.put(cell.keys.revoked(old), text_of(RevokedKey{.tenant = kAnn, .revoked_unix_ms = 1}));
  cell.put(cell.keys.revoked(young),
           text_of(RevokedKey{.tenant = kAnn, .revoked_unix_ms = cell.calls.unix_ms - 1}));
  REQUIRE(revoke_key(cell.calls, key, {}));
  CHECK(cell.value(cell.keys.revoked(old)).empty());
  CHECK(!cell.value(cell.keys.revoked(young)).empty());
}

TEST_CASE("cell admin: a wait looks at etcd once a pause, and less often the longer it takes") {
  Cell cell;
  const ApiKeyId key = cell.create_key();
  cell.set_parts({cell.join("a"), cell.join("b"), cell.join("c")});
  int calls = 0;
  const auto commit = cell.calls.commit;
  cell.calls.commit = [&](const etcd::Transaction& transaction) {
    ++calls;
    return commit(transaction);
  };
  const auto revoked = revoke_key(cell.calls, key, Wait(seconds(5)));
  REQUIRE(!revoked);
  CHECK(calls <= cell.waits + 5);  // reads before the change, and the change
  CHECK(cell.waits < 35);
}

TEST_CASE("cell admin: a wait that ends while etcd is away says so") {
  Cell cell;
  const ApiKeyId key = cell.create_key();
  cell.set_parts({cell.join("a")});
  const auto commit = cell.calls.commit;
  cell.calls.commit = [&](const etcd::Transaction& transaction) -> Result<etcd::TransactionReply> {
    if (cell.waits > 0) return fail(Errc::TimedOut, "no member answers");
    return commit(transaction);
  };
  const auto revoked = revoke_key(cell.calls, key, Wait(seconds(1)));
  REQUIRE(!revoked);
  CHECK(revoked.error().code == Errc::TimedOut);
  CHECK_THAT(revoked.error().detail,
             Contains("the change is written") && Contains("now no member answers"));
}

TEST_CASE("cell admin: a host's role writes its own key, and no key, tenant, order or other host") {
  const CellName name{"c"};
  const CellKeys keys(name);
  const auto may_write = [](const EtcdRole& role, const std::string& key) {
    return std::ranges::any_of(role.grants, [&](const Grant& grant) {
      return grant.may_write && grant.range.contains(key);
    });
  };
  const EtcdRole host = host_role(name, {"h1"});
  for (const std::string& key : {keys.host({"h1"}), keys.ledger(kAnn), keys.mail({"h1"}, kAnn)})
    CHECK(may_write(host, key));
  for (const std::string& key :
       {keys.host({"h2"}), keys.host({"h12"}), keys.wanted({"h1"}), keys.tenant(kAnn),
        keys.key({"0011223344556677"}), keys.revoked({"0011223344556677"}), keys.config(),
        std::string("/leasehold/d/hosts/h1")})
    CHECK_FALSE(may_write(host, key));
  const EtcdRole gateway = gateway_role(name);
  CHECK(may_write(gateway, keys.host({"h1"})));
  for (const std::string& key : {keys.ledger(kAnn), keys.tenant(kAnn), keys.config()})
    CHECK_FALSE(may_write(gateway, key));
  CHECK(may_write(operator_role(name), keys.config()));
  CHECK_FALSE(may_write(operator_role(name), "/leasehold/d/config"));
  CHECK_THAT(etcdctl_script({host}),
             Contains("etcdctl role grant-permission leasehold-c-host-h1 readwrite "
                      "/leasehold/c/hosts/h1\n") &&
                 Contains("readwrite /leasehold/c/ledger/ /leasehold/c/ledger0\n"));
}

TEST_CASE("cell admin: a part that no host can have written is named, and nothing is written") {
  Cell cell;
  const ApiKeyId key = cell.create_key();
  const PartOwner a = cell.join("a");
  const etcd::Revision policy =
      cell.etcd.read(etcd::KeyRange::one(cell.keys.tenant(kAnn))).front().modified;
  const Part part{.owner = a,
                  .share = {.concurrent = 4, .blocks = 10},
                  .demand = {},
                  .as_of = policy,
                  .instead_of = {}};
  Part later = part, larger = part, younger = part;
  later.as_of.value += 1;
  larger.share.concurrent = 5;
  younger.owner.incarnation.value = 1'000;
  const std::pair<Part, const char*> wrong[] = {{later, "a (4) has applied revision 3, but"},
                                                {larger, "a (4) has 5 requests"},
                                                {younger, "a (1000) did not exist"}};
  for (const auto& [each, why] : wrong) {
    cell.put(cell.keys.ledger(kAnn), text_of(Ledger{.parts = {each}}));
    const etcd::Revision before = cell.etcd.revision();
    const auto refused = revoke_key(cell.calls, key, {});
    REQUIRE(!refused);
    CHECK(refused.error().code == Errc::BadRequest);
    CHECK_THAT(refused.error().detail, Contains("/leasehold/c/ledger/ann") && Contains(why));
    CHECK(cell.etcd.revision() == before);
    CHECK_THAT(examine(cell.calls)->notes.at(0), Contains(why));
  }
  cell.put(cell.keys.ledger(kAnn), text_of(Ledger{.parts = {part}}));
  REQUIRE(admit_tenant(cell.calls, kAnn, {.concurrent = 2}, {}));  // above the limits for a while
  CHECK(read_ledger("ledger", cell.value(cell.keys.ledger(kAnn))));
  CHECK(revoke_key(cell.calls, key, {}));
}
