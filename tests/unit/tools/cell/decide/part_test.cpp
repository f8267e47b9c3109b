// What one host does with its part of a tenant.
#include <catch2/catch.hpp>

#include "tests/unit/tools/cell/decide/one_tenant.hpp"

using namespace leasehold;
using namespace leasehold::cell;
using namespace leasehold::cell::one_tenant;
using Catch::Contains;

TEST_CASE_METHOD(HostAlone, "part: a host alone takes all, and gives up what another one demands") {
  CHECK(a.limit() == requests(8));
  CHECK(a.recorded() == requests(8));
  a.apply();

  Host b(cell, "b", 4);
  REQUIRE(b.run());
  CHECK(b.limit() == Share());
  CHECK(b.part.is_short());
  CHECK(cell.has_mail("a"));

  a.part.look_again();
  REQUIRE(a.run());
  CHECK(a.limit() == requests(4));
  CHECK(a.recorded() == requests(8));  // until the broker has confirmed
  a.part.confirmed(a.part.limit().revision, requests(6));
  REQUIRE(a.run());
  CHECK(a.recorded() == requests(6));  // two of its requests still run
  a.apply();
  REQUIRE(a.run());
  CHECK(a.recorded() == requests(4));
  CHECK(!cell.has_mail("a"));
  CHECK(cell.has_mail("b"));

  b.part.look_again();
  REQUIRE(b.run());
  CHECK(b.limit() == requests(4));
  CHECK(!b.part.is_short());
}

TEST_CASE("part: the broker is raised by the reply of a write only") {
  Cell cell;
  Host a(cell, "a", 3);
  const auto read = a.part.next_call();
  REQUIRE(a.part.replied(cell.etcd.execute(*read)));
  const auto write = a.part.next_call();
  REQUIRE(write);
  CHECK(a.limit() == Share());
  CHECK(!a.part.next_call());  // one call at a time
  cell.etcd.execute(*write);   // it arrives, and its reply is lost
  a.part.failed();
  CHECK(a.recorded() == requests(8));
  CHECK(a.limit() == Share());
  REQUIRE(a.run());  // writes again, so that nothing older can follow
  CHECK(a.limit() == requests(8));
  CHECK(!cell.etcd.execute(*write).succeeded);
}

TEST_CASE_METHOD(HostAlone, "part: a report about an earlier limit confirms nothing") {
  const std::uint64_t earlier = a.part.limit().revision;
  Host b(cell, "b", 8);
  REQUIRE(b.run());
  a.part.wants(requests(8));
  a.part.look_again();
  REQUIRE(a.run());
  a.part.confirmed(earlier, Share());
  REQUIRE(a.run());
  CHECK(a.recorded() == requests(8));
}

TEST_CASE_METHOD(HostAlone, "part: a void part is dropped, and only if its host is still gone") {
  cell.etcd.execute({.conditions = {},
                     .success = {etcd::Delete{etcd::KeyRange::one(kKeys.host(HostName{"a"}))}},
                     .failure = {}});
  Host b(cell, "b", 5);
  REQUIRE(b.run());
  CHECK(b.limit() == requests(8));
  CHECK(cell.ledger().find(a.owner) == nullptr);
  a.part.look_again();
  REQUIRE(!a.cell.etcd
               .execute({.conditions = {etcd::Compare::created_at(kKeys.host(HostName{"a"}),
                                                                  a.owner.incarnation)},
                         .success = {},
                         .failure = {}})
               .succeeded);
  a.part.fenced();
  CHECK(a.limit() == Share());
  CHECK(!a.part.next_call());
}

TEST_CASE_METHOD(HostAlone, "part: a lowering that arrives late cannot follow a raise") {
  a.part.wants({});
  REQUIRE(a.next_write());  // of the demand
  a.part.failed();
  a.apply();
  const auto lowering = a.next_write();
  REQUIRE(lowering);
  a.part.failed();            // it is on its way
  a.part.wants(requests(8));  // as the ledger still says
  REQUIRE(a.run());
  CHECK(a.limit() == requests(8));
  CHECK(!cell.etcd.execute(*lowering).succeeded);
}

TEST_CASE_METHOD(HostAlone, "part: a limit that was lowered and not yet returned is raised again") {
  a.part.wants({});
  REQUIRE(a.run());
  CHECK(a.limit() == Share());
  a.part.wants(requests(8));  // before the broker has confirmed
  REQUIRE(a.run());
  CHECK(a.limit() == requests(8));
}

TEST_CASE_METHOD(HostAlone, "part: each host gets the whole limits of adapters, and each change") {
  const std::uint64_t earlier = a.part.limit().revision;
  Host b(cell, "b", 8);
  const CellPolicy policy{.limits = requests(8), .adapters = {.count = 3, .bytes = 1 << 20}};
  cell.put(kKeys.tenant(kAnn), text_of(policy));
  for (Host* host : {&a, &b}) {
    host->part.look_again();
    REQUIRE(host->run());
    CHECK(host->part.limit().adapters == policy.adapters);
  }
  CHECK(a.part.limit().revision > earlier);
  a.part.look_again();
  REQUIRE(a.run());
  const std::uint64_t told = a.part.limit().revision;
  a.part.look_again();
  REQUIRE(a.run());
  CHECK(a.part.limit().revision == told);
}

TEST_CASE_METHOD(HostAlone, "part: an idle host returns its part") {
  a.part.wants({});
  REQUIRE(a.run());
  CHECK(a.limit() == Share());
  CHECK(a.recorded() == requests(8));
  a.apply();
  REQUIRE(a.run());
  CHECK(cell.ledger() == Ledger());
}

TEST_CASE("part: nothing is granted on a ledger that was edited by hand") {
  Cell cell;
  cell.put(kKeys.ledger(kAnn), R"({"parts":[{"host":"z","concurrent":"all"}]})");
  Host a(cell, "a", 3);
  const auto done = a.run();
  REQUIRE(!done);
  CHECK(done.error().code == Errc::BadRequest);
  CHECK_THAT(done.error().detail, Contains("/leasehold/c/ledger/ann") && Contains("restore"));
  CHECK(a.limit() == Share());
}

TEST_CASE("part: a wrong ledger is read again until it is mended, by hosts that need it") {
  Cell cell;
  Host a(cell, "a", 3), idle(cell, "b", 0);
  cell.put(kKeys.ledger(kAnn), R"({"parts":[{"host":"z","concurrent":"all"}]})");
  idle.part.look_again();
  for (Host* host : {&a, &a, &idle}) REQUIRE_FALSE(host->run());
  CHECK(idle.part.is_returned());
  cell.put(kKeys.ledger(kAnn), R"({"parts":[]})");
  REQUIRE(a.run());
  CHECK(a.limit() == requests(8));
}

TEST_CASE_METHOD(HostAlone,
                 "part: a limit that is confirmed before the write is lowered by that write") {
  Host b(cell, "b", 8);
  REQUIRE(b.run());
  REQUIRE(cell.has_mail("a"));
  a.part.look_again();
  while (!a.part.awaits_confirmation()) {
    const auto read = a.part.next_call();
    REQUIRE(read);
    REQUIRE(a.part.replied(cell.etcd.execute(*read)));
  }
  a.apply();
  CHECK_FALSE(a.part.awaits_confirmation());
  auto write = a.part.next_call();
  REQUIRE(write);
  REQUIRE_FALSE(write->conditions.empty());
  REQUIRE(a.part.replied(cell.etcd.execute(*write)));
  CHECK(a.recorded() == requests(4));
}

TEST_CASE("part: the members of the last view are read with the ledger") {
  Cell cell;
  Host a(cell, "a", 8), b(cell, "b", 8);
  REQUIRE(a.run());
  REQUIRE(b.run());
  const auto reads = [&] {
    b.part.look_again();
    int count = 0;
    for (auto call = b.part.next_call(); call; call = b.part.next_call()) {
      if (call->conditions.empty()) ++count;
      REQUIRE(b.part.replied(cell.etcd.execute(*call)));
    }
    return count;
  };
  (void)reads();
  CHECK(reads() == 1);
  cell.etcd.execute({.conditions = {},
                     .success = {etcd::Delete{etcd::KeyRange::one(kKeys.host(HostName{"a"}))}},
                     .failure = {}});
  cell.join("a");
  CHECK(reads() == 1);
  CHECK(b.limit() == requests(8));  // the part of the earlier a is void
}

TEST_CASE("part: a demand beyond the tenant's limits counts as these limits") {
  Cell cell;
  Host a(cell, "a", 100);
  REQUIRE(a.run());
  CHECK(a.limit() == requests(8));
  CHECK(cell.ledger().parts.front().demand == requests(8));
  CHECK_FALSE(a.part.is_short());
  cell.set_policy(requests(20));
  a.part.look_again();
  REQUIRE(a.run());
  CHECK(a.limit() == requests(20));
}

TEST_CASE_METHOD(HostAlone,
                 "part: what a host gives up raises the parts of the others, which write nothing") {
  Host b(cell, "b", 8);
  REQUIRE(b.run());
  REQUIRE(b.limit() == Share());
  a.part.look_again();
  REQUIRE(a.run());
  a.apply();
  REQUIRE(a.run());
  CHECK(b.recorded() == requests(4));
  CHECK(b.limit() == Share());  // b has not read it
  REQUIRE(cell.mail("b") == kRaisedMail);
  const auto before = cell.etcd.revision();
  b.part.look_again();
  REQUIRE(b.run());
  CHECK(b.limit() == requests(4));
  CHECK(cell.etcd.revision() == before);
}

TEST_CASE_METHOD(HostAlone, "part: a host that gives some up asks no other host for more") {
  Host b(cell, "b", 8);
  for (Host* host : {&b, &a, &a, &b}) {
    host->part.look_again();
    REQUIRE(host->run());
    host->apply();
  }
  Host c(cell, "c", 8);
  REQUIRE(c.run());
  CHECK(cell.mail("b") == kWantedMail);
  cell.etcd.execute(
      {.conditions = {}, .success = {etcd::Delete{kKeys.mail_of(HostName{"b"})}}, .failure = {}});
  for (int i = 0; i < 2; ++i) {
    a.part.look_again();
    REQUIRE(a.run());
    a.apply();
  }
  CHECK(a.recorded().concurrent == 3);
  CHECK(cell.has_mail("c"));
  CHECK(!cell.has_mail("b"));  // it has four, but c has asked it
}

TEST_CASE("part: a host that returns its part leaves all to the one that remains") {
  Cell cell;
  Host a(cell, "a", 2), b(cell, "b", 2);
  REQUIRE(a.run());
  a.apply();
  REQUIRE(b.run());
  a.part.look_again();
  REQUIRE(a.run());
  a.apply();
  REQUIRE(a.run());
  b.part.look_again();
  REQUIRE(b.run());
  b.apply();
  b.part.wants({});
  REQUIRE(b.run());
  b.apply();
  REQUIRE(b.run());
  CHECK(a.recorded() == requests(8));
  a.part.look_again();
  REQUIRE(a.run());
  CHECK(a.limit() == requests(8));
}

TEST_CASE_METHOD(HostAlone,
                 "part: a read raises the broker once no write of unknown outcome can follow it") {
  a.part.wants({});
  REQUIRE(a.run());  // writes the demand
  a.apply();
  const auto lowering = a.next_write();
  REQUIRE(lowering);
  a.part.failed();  // it is on its way
  Host b(cell, "b", 1);
  REQUIRE(b.run());  // the ledger has another revision now
  a.part.wants(requests(8));
  const auto read = a.part.next_call();
  REQUIRE(read);
  REQUIRE(a.part.replied(cell.etcd.execute(*read)));
  CHECK(a.limit() == requests(7));
  CHECK_FALSE(cell.etcd.execute(*lowering).succeeded);
}

TEST_CASE_METHOD(HostAlone, "part: no write lowers the part of another host") {
  Host b(cell, "b", 8), c(cell, "c", 8);
  REQUIRE(b.run());
  REQUIRE(c.run());
  CHECK(a.recorded() == requests(8));
  CHECK(cell.mail("a") == kWantedMail);
}

TEST_CASE("part: a refused write waits until the caller looks again") {
  Cell cell;
  Host a(cell, "a", 8), b(cell, "b", 8);
  const auto write = a.next_write();
  REQUIRE(write);
  REQUIRE(b.run());
  REQUIRE(a.part.replied(cell.etcd.execute(*write)));
  CHECK(a.part.refusals() == 1);
  CHECK_FALSE(a.part.next_call());
  CHECK_FALSE(a.part.is_returned());
  a.part.look_again();
  REQUIRE(a.run());
  CHECK(a.part.refusals() == 0);
  CHECK(cell.ledger().parts.size() == 2);
}

TEST_CASE("part: a host that has all of the limits does not write how much of them it uses") {
  Cell cell;
  Host a(cell, "a", 2);
  REQUIRE(a.run());
  a.part.wants(requests(4));
  CHECK_FALSE(a.part.next_call());
  Host b(cell, "b", 8);
  REQUIRE(b.run());
  REQUIRE(cell.mail("a") == kWantedMail);
  a.part.look_again();
  REQUIRE(a.run());
  CHECK(cell.ledger().find(a.owner)->demand == requests(4));
}
