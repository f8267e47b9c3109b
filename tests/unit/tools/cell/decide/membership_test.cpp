// When a host is a member of its cell, and until when it may run.
#include <catch2/catch.hpp>

#include "tests/simulation/cell/modelled_etcd.hpp"
#include "tools/cell/decide/membership.hpp"
#include "tools/cell/decide/silent_hosts.hpp"

using namespace leasehold;
using namespace leasehold::cell;
using Catch::Contains;
using simulation::ModelledEtcd;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const CellKeys kCell{CellName{"c"}};
const HostName kHost{"h1"};
constexpr Duration kTtl = seconds(30);

TimePoint at(Duration time) {
  return TimePoint{1'000'000'000'000} + time;
}

HostRecord record(std::uint64_t beat, Duration ttl = kTtl) {
  return {.beat = {beat}, .ttl_ms = ttl / milliseconds(1)};
}

struct MemberHost {
  explicit MemberHost(ModelledEtcd& with) : etcd(with) {}

  /// Sends a beat at `now`. Without `is_answered` it arrives and its reply is lost.
  MembershipChange beat(std::uint64_t number, Duration now, bool is_answered = true,
                        Duration ttl = kTtl) {
    const auto call = membership.next_call(record(number, ttl)).value();
    membership.sent(record(number, ttl), at(now));
    const auto reply = etcd.execute(call);
    return is_answered ? membership.replied(reply).value() : MembershipChange::Renewed;
  }
  Duration ceiling() const { return membership.ceiling() - at({}); }

  ModelledEtcd& etcd;
  Membership membership{kCell, kHost};
};

void erase(ModelledEtcd& etcd) {
  etcd.execute({.conditions = {},
                .success = {etcd::Delete{etcd::KeyRange::one(kCell.host(kHost))}},
                .failure = {}});
}

}  // namespace

TEST_CASE("membership: the ceiling counts from the sending of the newest beat that arrived") {
  ModelledEtcd etcd;
  MemberHost host(etcd);
  CHECK(!host.membership.may_run(at({})));
  CHECK(host.beat(1, {}) == MembershipChange::Joined);
  CHECK(host.ceiling() == kTtl - kCeilingMargin);
  CHECK(host.beat(2, seconds(10)) == MembershipChange::Renewed);
  CHECK(host.ceiling() == seconds(40) - kCeilingMargin);
  CHECK(host.membership.may_run(at(milliseconds(39'799))));
  CHECK(!host.membership.may_run(at(milliseconds(39'800))));
}

TEST_CASE("membership: a beat whose reply was lost is recognised, and another number fences") {
  ModelledEtcd etcd;
  MemberHost host(etcd);
  host.beat(1, {});
  host.beat(2, seconds(10), false);
  CHECK(host.ceiling() == kTtl - kCeilingMargin);  // its outcome is not known yet
  CHECK(host.beat(3, seconds(20)) == MembershipChange::Renewed);
  CHECK(host.ceiling() == seconds(40) - kCeilingMargin);  // that of beat 2, which arrived
  CHECK(host.beat(4, seconds(30)) == MembershipChange::Renewed);

  const auto owner = host.membership.owner();
  erase(etcd);
  MemberHost other(etcd);  // a second machine with this name
  CHECK(other.beat(9, seconds(31)) == MembershipChange::Joined);
  CHECK(host.beat(5, seconds(32)) == MembershipChange::Fenced);
  CHECK(!host.membership.may_run(at(seconds(32))));
  CHECK(host.membership.owner() == std::nullopt);
  CHECK(host.beat(6, seconds(33)) == MembershipChange::NameInUse);
  CHECK(other.membership.owner()->incarnation > owner->incarnation);
}

TEST_CASE(
    "membership: however many replies were lost, the host knows the beat that arrives at last") {
  ModelledEtcd etcd;
  MemberHost host(etcd);
  host.beat(1, {});
  std::vector<etcd::Transaction> waiting;  // at the socket of a member of etcd that was stopped
  for (std::uint64_t number = 2; number < 600; ++number) {
    const HostRecord beat = record(host.membership.next_beat({number}).value);
    waiting.push_back(host.membership.next_call(beat).value());
    host.membership.sent(beat, at(seconds(number)));
  }
  const auto saved = host.membership.saved();
  CHECK(saved->sent.size() == Membership::kMaxSent);
  const std::size_t first = GENERATE(0, 1, 62, 63, 64, 597);
  REQUIRE(etcd.execute(waiting[first]).succeeded);
  for (const auto& late : waiting) CHECK_FALSE(etcd.execute(late).succeeded);

  const HostRecord next = record(host.membership.next_beat({600}).value);
  const auto call = host.membership.next_call(next).value();
  host.membership.sent(next, at(seconds(600)));
  CHECK(host.membership.replied(etcd.execute(call)).value() == MembershipChange::Renewed);
  const Duration sent = seconds(2 + std::min(first, Membership::kMaxSent - 1));
  CHECK(host.ceiling() == sent + kTtl - kCeilingMargin);
  CHECK(host.beat(601, seconds(601)) == MembershipChange::Renewed);
  CHECK(host.ceiling() == seconds(631) - kCeilingMargin);
}

TEST_CASE("membership: a repeated number has the shortest of its TTLs") {
  ModelledEtcd etcd;
  MemberHost host(etcd);
  host.beat(1, {});
  for (std::uint64_t number = 2; number < 2 + Membership::kMaxSent; ++number)
    host.beat(number, seconds(1), false);
  const auto [ttl, shortest] = GENERATE(table<Duration, Duration>(
      {{seconds(20), seconds(20)}, {seconds(0), kTtl}, {seconds(40), kTtl}}));
  const BeatId again = host.membership.next_beat({99});
  CHECK(again == host.membership.saved()->sent.back().beat);
  host.beat(again.value, seconds(2), false, ttl);
  CHECK(host.membership.saved()->sent.back() == SentBeat{again, at(seconds(1)), shortest});
}

TEST_CASE("membership: the next beat is due by the sending of the newest one that arrived") {
  ModelledEtcd etcd;
  MemberHost host(etcd);
  host.beat(1, {});
  CHECK(host.membership.time_to_beat(kTtl, at(seconds(3))) == seconds(7));
  host.beat(2, seconds(10), false);
  // An outage ends: beat 2 has arrived, and its time is over.
  CHECK(host.beat(3, seconds(60)) == MembershipChange::Renewed);
  CHECK(!host.membership.may_run(at(seconds(60))));
  CHECK(host.membership.time_to_beat(kTtl, at(seconds(60))) == Duration::zero());
  host.beat(4, seconds(60));
  CHECK(host.membership.time_to_beat(kTtl, at(seconds(60))) == seconds(10));
}

TEST_CASE("membership: a join whose reply was lost is recognised") {
  ModelledEtcd etcd;
  MemberHost host(etcd);
  host.beat(1, {}, false);
  CHECK(!host.membership.is_member());
  CHECK(host.beat(2, seconds(1)) == MembershipChange::Joined);
  CHECK(host.ceiling() == kTtl - kCeilingMargin);
}

TEST_CASE("membership: a shorter TTL applies from the sending of its first beat") {
  ModelledEtcd etcd;
  MemberHost host(etcd);
  host.beat(1, {}, true, seconds(600));
  host.beat(2, seconds(10), false, seconds(30));  // observers may count from it now
  CHECK(host.ceiling() == seconds(40) - kCeilingMargin);
  host.beat(3, seconds(20), true, Duration::zero());
  host.beat(4, seconds(21), true, Duration::zero());
  CHECK(host.membership.ceiling() == kNoCeiling);
}

TEST_CASE("membership: a shorter TTL is announced when the broker can have no later ceiling") {
  ModelledEtcd etcd;
  MemberHost host(etcd);
  const auto next_ttl = [&](Duration now) { return host.membership.next_ttl(kTtl, at(now)); };
  CHECK(next_ttl({}) == kTtl);
  host.beat(1, {}, true, seconds(600));
  CHECK(next_ttl(seconds(10)) == seconds(590));
  host.beat(2, seconds(10), true, seconds(590));
  CHECK(host.ceiling() == seconds(600) - kCeilingMargin);
  CHECK(next_ttl(seconds(580)) == kTtl);
  CHECK(host.membership.next_ttl(Duration::zero(), at(seconds(20))) == Duration::zero());
  host.beat(3, seconds(20), false, seconds(700));  // the broker may have this ceiling
  CHECK(next_ttl(seconds(30)) == seconds(690));
}

TEST_CASE("membership: a restarted agent goes on in the membership of the earlier one") {
  ModelledEtcd etcd;
  MemberHost host(etcd);
  host.beat(1, {});
  host.beat(2, seconds(10), false);
  const auto saved = read_saved_membership(text_of(*host.membership.saved(), "boot-1"), "boot-1");
  REQUIRE(saved);
  CHECK(*saved == *host.membership.saved());
  MemberHost next(etcd);
  next.membership.resume(*saved);
  CHECK(next.beat(3, seconds(12)) == MembershipChange::Renewed);
  CHECK(next.membership.owner() == host.membership.owner());
  CHECK(next.ceiling() == seconds(40) - kCeilingMargin);

  const auto text = text_of(*saved, "boot-1");
  CHECK(read_saved_membership(text, "boot-2").error().code == Errc::StaleGeneration);
  CHECK(read_saved_membership(text.substr(0, 40), "boot-1").error().code == Errc::FileCorrupt);
}

TEST_CASE("membership: a key that was edited by hand fences its host") {
  ModelledEtcd etcd;
  MemberHost host(etcd);
  host.beat(1, {});
  etcd.execute({.conditions = {}, .success = {etcd::Put{kCell.host(kHost), "{"}}, .failure = {}});
  CHECK(host.beat(2, seconds(10)) == MembershipChange::Fenced);
}

TEST_CASE("membership: a beat reads what an operator wants, and a wrong value is named") {
  ModelledEtcd etcd;
  MemberHost host(etcd);
  host.beat(1, {});
  CHECK(!host.membership.wanted()->is_draining);
  const auto want = [&](const std::string& text) {
    etcd.execute(
        {.conditions = {}, .success = {etcd::Put{kCell.wanted(kHost), text}}, .failure = {}});
  };
  want(R"({"drain": true})");
  host.beat(2, seconds(1));
  CHECK(host.membership.wanted()->is_draining);
  want(R"({"drain": "yes"})");
  CHECK(host.beat(3, seconds(2)) == MembershipChange::Renewed);
  REQUIRE(!host.membership.wanted());
  CHECK_THAT(host.membership.wanted().error().detail,
             Contains("/leasehold/c/wanted/h1") && Contains("drain"));
}

TEST_CASE("silent hosts: a host is expired when one beat was the newest for TTL and slack") {
  ModelledEtcd etcd;
  MemberHost host(etcd);
  host.beat(1, {});
  SilentHosts hosts(kCell, seconds(1));
  const auto look = [&](Duration now) {
    hosts.listed(etcd.read(kCell.hosts()), at(now));
    return hosts.expired(at(now));
  };
  for (Duration now{}; now <= milliseconds(31'310); now += milliseconds(10))
    REQUIRE(look(now).empty());
  auto expiries = look(milliseconds(31'320));  // (30 s + 1 s) · 1.01, and a step
  REQUIRE(expiries.size() == 1);
  CHECK(expiries.front().host == kHost);
  host.beat(2, seconds(31));  // it arrives first
  CHECK(!etcd.execute(expiries.front().transaction).succeeded);
  CHECK(host.beat(3, seconds(32)) == MembershipChange::Renewed);
}

TEST_CASE("silent hosts: an outage of etcd, a TTL of zero and a wrong record expire no host") {
  ModelledEtcd etcd;
  MemberHost host(etcd);
  host.beat(1, {});
  SilentHosts hosts(kCell, seconds(1));
  const auto look = [&](Duration now) {
    hosts.listed(etcd.read(kCell.hosts()), at(now));
    return hosts.expired(at(now)).size();
  };
  for (Duration now{}; now < seconds(20); now += seconds(1)) CHECK(look(now) == 0);
  CHECK(look(seconds(120)) == 0);  // every count begins again
  for (Duration now = seconds(121); now < seconds(151); now += seconds(1)) CHECK(look(now) == 0);
  CHECK(look(seconds(152)) == 1);

  host.beat(2, seconds(153), true, Duration::zero());
  for (Duration now = seconds(153); now < seconds(300); now += seconds(1)) CHECK(look(now) == 0);
  etcd.execute({.conditions = {}, .success = {etcd::Put{kCell.host(kHost), "x"}}, .failure = {}});
  for (Duration now = seconds(300); now < seconds(400); now += seconds(1)) CHECK(look(now) == 0);
  REQUIRE(hosts.problems().size() == 1);
  CHECK_THAT(hosts.problems().front().detail, Contains("hosts/h1"));
}

TEST_CASE("silent hosts: a watch counts from each beat, and reports what is more than a beat") {
  ModelledEtcd etcd;
  MemberHost host(etcd);
  host.beat(1, {});
  SilentHosts hosts(kCell, seconds(1));
  hosts.listed(etcd.read(kCell.hosts()), at({}));
  const auto change = [&] { return etcd::WatchEvent{.entry = etcd.read(kCell.hosts()).front()}; };
  host.beat(2, seconds(10));
  CHECK_FALSE(hosts.changed(change(), at(seconds(10))));
  CHECK(hosts.hosts().at(kHost).modified == change().entry.modified);
  for (Duration now = seconds(1); now <= seconds(41); now += seconds(1)) {
    hosts.contacted(at(now));
    CHECK(hosts.expired(at(now)).empty());
  }
  hosts.contacted(at(seconds(42)));
  CHECK(hosts.expired(at(seconds(42))).size() == 1);  // 31.31 s after the beat
  hosts.refused(kHost, at(seconds(42)));
  CHECK(hosts.expired(at(seconds(43))).empty());

  etcd::WatchEvent event = change();
  event.entry.value = R"({"beat":"3","ttl_ms":30000,"draining":true})";
  CHECK(hosts.changed(event, at(seconds(43))));
  CHECK_FALSE(hosts.changed(event, at(seconds(44))));
  event.entry.created = {event.entry.created.value + 100};  // the host has joined again
  CHECK(hosts.changed(event, at(seconds(45))));
  event.is_deleted = true;
  CHECK(hosts.changed(event, at(seconds(46))));
  CHECK_FALSE(hosts.changed(event, at(seconds(47))));
  CHECK(hosts.hosts().empty());
}

TEST_CASE("silent hosts: a watch without contact expires no host, however long it is silent") {
  ModelledEtcd etcd;
  MemberHost host(etcd);
  host.beat(1, {});
  SilentHosts hosts(kCell, seconds(1));
  hosts.listed(etcd.read(kCell.hosts()), at({}));
  hosts.contacted(at(seconds(100)));
  CHECK(hosts.expired(at(seconds(100))).empty());
  for (Duration now = seconds(101); now <= seconds(131); now += seconds(1)) {
    hosts.contacted(at(now));
    CHECK(hosts.expired(at(now)).empty());
  }
  hosts.contacted(at(seconds(132)));
  CHECK(hosts.expired(at(seconds(132))).size() == 1);
}
