// What one host does with its part of a tenant when texts move to it from other hosts.
#include <catch2/catch.hpp>

#include "tests/unit/tools/cell/decide/one_tenant.hpp"

using namespace leasehold;
using namespace leasehold::cell;
using namespace leasehold::cell::one_tenant;

TEST_CASE_METHOD(HostAlone,
                 "part: a host that gets the texts of another one uses its limits, once") {
  Host b(cell, "b", 8);
  b.part.replaces(a.owner.host);
  REQUIRE(b.run());
  CHECK(b.limit() == requests(8));
  CHECK(cell.ledger().find(b.owner)->instead_of == a.owner);
  CHECK(counting_sum(cell.ledger(), cell.view().members) == requests(8));
  Host c(cell, "c", 8);
  REQUIRE(c.run());
  CHECK(c.limit() == Share());

  CHECK(cell.has_mail("a"));
  a.part.look_again();
  REQUIRE(a.run());
  CHECK(a.limit() == Share());  // its texts are read at b
  a.apply();
  REQUIRE(a.run());
  CHECK(a.recorded() == Share());
  b.part.look_again();
  REQUIRE(b.run());
  CHECK(!cell.ledger().find(b.owner)->instead_of);
}

TEST_CASE_METHOD(
    HostAlone, "part: a text that moves here before the broker's part is known replaces at once") {
  const PartOwner owner = cell.join("b");
  TenantPart part(kKeys, kAnn);
  part.replaces(a.owner.host);
  part.resumed(owner, {}, {});
  part.wants(requests(1));
  REQUIRE(cell.run(part));
  CHECK(part.limit().share == requests(1));
  CHECK(cell.ledger().find(owner)->instead_of == a.owner);
}

TEST_CASE_METHOD(HostAlone, "part: what replaces a part that has become void counts by itself") {
  Host b(cell, "b", 5);
  b.part.replaces(a.owner.host);
  REQUIRE(b.run());
  CHECK(b.limit() == requests(5));
  cell.etcd.execute({.conditions = {},
                     .success = {etcd::Delete{etcd::KeyRange::one(kKeys.host(HostName{"a"}))}},
                     .failure = {}});
  Host c(cell, "c", 8);
  REQUIRE(c.run());
  CHECK(c.limit().fits(requests(3)));
  CHECK(counting_sum(cell.ledger(), cell.view().members).fits(requests(8)));
}

TEST_CASE_METHOD(HostAlone, "part: a replacement is not replaced itself") {
  Host b(cell, "b", 8);
  b.part.replaces(a.owner.host);
  REQUIRE(b.run());
  Host c(cell, "c", 8);
  c.part.replaces(b.owner.host);
  REQUIRE(c.run());
  CHECK(c.limit() == Share());
  CHECK(!cell.ledger().find(c.owner)->instead_of);
}

TEST_CASE_METHOD(HostAlone,
                 "part: a host that joins again after its texts have moved is not replaced") {
  Host b(cell, "b", 8);
  b.part.replaces(a.owner.host);
  const auto write = b.next_write();
  REQUIRE(write);
  cell.etcd.execute({.conditions = {},
                     .success = {etcd::Delete{etcd::KeyRange::one(kKeys.host(HostName{"a"}))}},
                     .failure = {}});
  Host again(cell, "a", 8);
  REQUIRE(again.run());
  REQUIRE(b.part.replied(cell.etcd.execute(*write)));
  REQUIRE(b.part.refusals() == 1);
  b.part.look_again();
  REQUIRE(b.run());
  CHECK(b.limit() == Share());
  CHECK(!cell.ledger().find(b.owner)->instead_of);
}

TEST_CASE_METHOD(
    HostAlone,
    "part: a text that moves here while a write is on its way replaces with the next one") {
  Host b(cell, "b", 8);
  const auto write = b.next_write();
  REQUIRE(write);
  b.part.replaces(a.owner.host);
  REQUIRE(b.part.replied(cell.etcd.execute(*write)));
  CHECK(b.limit() == Share());
  REQUIRE(b.run());
  CHECK(cell.ledger().find(b.owner)->instead_of == a.owner);
  CHECK_FALSE(b.limit() == Share());
}
