// The commands of `brokerctl cell`, against a modelled etcd.
#include <algorithm>

#include "tests/unit/tools/cell/admin/modelled_cell.hpp"
#include "tools/cell/admin/roles.hpp"
#include "tools/cell/admin/show.hpp"

using namespace leasehold;
using namespace leasehold::cell;
using Catch::Contains;
using std::chrono::milliseconds;
using std::chrono::seconds;

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
  CHECK(revoked->notes.front() == "other hosts have no part of ann, and so none of its keys");
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
  CHECK_THAT(why_of(*revoked, 1), Contains("expired 0.0 s ago, after 11.1 s without a beat"));
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
  const Limits first{.concurrent = 4, .blocks = 100, .adapters = 2, .adapter_bytes = 1 << 20};
  REQUIRE(admit_tenant(cell.calls, kAnn, first, {}));
  REQUIRE(admit_tenant(cell.calls, kAnn, {.concurrent = 8}, {}));
  const auto policy = read_policy("k", cell.value(cell.keys.tenant(kAnn))).value();
  CHECK(policy.limits.concurrent == 8);
  CHECK(policy.limits.blocks == 100);
  CHECK(policy.limits.tokens_per_minute > 0);
  CHECK(policy.adapters == AdapterLimits{.count = 2, .bytes = 1 << 20});
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
  for (const Answer& answer : {examined, show_hosts(cell.calls).value()})
    CHECK_THAT(answer.notes.at(0), Contains("/leasehold/c/ledger/ann"));
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
  const EtcdRole monitor = monitor_role(name);
  CHECK(std::ranges::none_of(monitor.grants, &Grant::may_write));
  CHECK(std::ranges::none_of(monitor.grants, [&](const Grant& grant) {
    return grant.range.contains(keys.key({"0011223344556677"}));
  }));
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
