// Ledgers, their law, the division, and what one host does with its part.
#include <catch2/catch.hpp>

#include "tests/simulation/cell/modelled_etcd.hpp"
#include "tools/cell/decide/division.hpp"
#include "tools/cell/decide/tenant_change.hpp"
#include "tools/cell/decide/tenant_part.hpp"

using namespace leasehold;
using namespace leasehold::cell;
using Catch::Contains;
using simulation::ModelledEtcd;

namespace {

const CellKeys kKeys{CellName{"c"}};
const TenantId kAnn{"ann"};

Share requests(std::uint32_t count) {
  return {.concurrent = count, .blocks = 10 * count};
}

PartOwner owner(const std::string& host, std::int64_t incarnation) {
  return {HostName{host}, {incarnation}};
}

Part part(PartOwner of, std::uint32_t count, std::optional<PartOwner> instead_of = {}) {
  return {.owner = std::move(of),
          .share = requests(count),
          .demand = {},
          .as_of = {1},
          .instead_of = std::move(instead_of)};
}

std::string problem_in(const std::string& value) {
  const auto read = read_ledger(kKeys.ledger(kAnn), value);
  REQUIRE(!read);
  CHECK(read.error().code == Errc::BadRequest);
  CHECK_THAT(read.error().detail, Contains("/leasehold/c/ledger/ann"));
  return read.error().detail;
}

/// Hosts of one cell, whose calls arrive at once.
struct Cell {
  Cell() { set_policy(requests(8)); }
  void set_policy(const Share& limits) { put(kKeys.tenant(kAnn), text_of(CellPolicy{limits})); }
  void put(const std::string& key, const std::string& value) {
    etcd.execute({.conditions = {}, .success = {etcd::Put{key, value}}, .failure = {}});
  }
  PartOwner join(const std::string& host) {
    put(kKeys.host(HostName{host}), text_of(HostRecord{.beat = {1}, .ttl_ms = 1000}).value());
    return owner(host, etcd.revision().value);
  }
  /// Executes calls until there is none.
  Result<void> run(TenantPart& part) {
    while (auto call = part.next_call()) {
      const auto done = part.replied(etcd.execute(*call));
      if (!done) return done;
    }
    return {};
  }
  Ledger ledger() {
    const auto found = etcd.read(etcd::KeyRange::one(kKeys.ledger(kAnn)));
    return found.empty() ? Ledger() : read_ledger("ledger", found.front().value).value();
  }
  bool has_mail(const std::string& host) {
    return !etcd.read(kKeys.mail_of(HostName{host})).empty();
  }
  TenantView view() {
    TenantView view = view_of(etcd.execute(ledger_read(kKeys, kAnn))).value();
    view.members = members_in(kKeys, etcd.execute(members_read(kKeys, view)));
    return view;
  }

  ModelledEtcd etcd;
};

struct Host {
  Host(Cell& in, const std::string& name, std::uint32_t demand) : cell(in), owner(in.join(name)) {
    part.joined(owner);
    part.wants(requests(demand));
  }
  Result<void> run() { return cell.run(part); }
  /// Executes reads up to the next write, which is not executed.
  std::optional<etcd::Transaction> next_write() {
    auto call = part.next_call();
    while (call && call->conditions.empty()) {
      (void)part.replied(cell.etcd.execute(*call));
      call = part.next_call();
    }
    return call;
  }
  /// The broker applies its limit, and nothing more runs.
  void apply() { part.confirmed(part.limit().revision, part.limit().share); }
  Share limit() const { return part.limit().share; }
  Share recorded() {
    const Ledger ledger = cell.ledger();
    const Part* found = ledger.find(owner);
    return found ? found->share : Share();
  }

  Cell& cell;
  PartOwner owner;
  TenantPart part{kKeys, kAnn};
};

}  // namespace

TEST_CASE("ledger: parts of members count, and a replacement counts once with what it replaces") {
  const PartOwner a = owner("a", 5), b = owner("b", 6);
  const Ledger ledger{{part(a, 4), part(b, 3, a), part(owner("c", 7), 2)}};
  const Incarnations all{{HostName{"a"}, {5}}, {HostName{"b"}, {6}}, {HostName{"c"}, {7}}};
  CHECK(counting_sum(ledger, all) == requests(6));
  Incarnations without_a = all;
  without_a[HostName{"a"}] = {9};  // a has joined again
  CHECK(counting_sum(ledger, without_a) == requests(5));
  CHECK(counting_sum(ledger, {}) == Share());
  const Ledger greater{{part(a, 2), part(b, 3, a)}};
  CHECK(counting_sum(greater, all) == requests(3));
}

TEST_CASE("ledger: what is written is read again, and a wrong value is named") {
  const Ledger ledger{{part(owner("a", 5), 4), part(owner("b", 6), 3, owner("a", 5))}};
  CHECK(read_ledger("k", text_of(ledger)).value() == ledger);
  CHECK_THAT(problem_in("x"), Contains("not a JSON object"));
  CHECK_THAT(problem_in("{}"), Contains("parts"));
  CHECK_THAT(problem_in(R"({"parts":[{"host":"a","incarnation":0,"as_of":1}]})"),
             Contains("incarnation"));
  CHECK_THAT(problem_in(R"({"parts":[{"host":"a b","incarnation":1,"as_of":1}]})"),
             Contains("host"));
  CHECK_THAT(problem_in(R"({"parts":[{"host":"a","incarnation":1,"as_of":1,"blocks":-1}]})"),
             Contains("blocks"));
  const std::string entry = R"({"host":"a","incarnation":1,"as_of":1})";
  CHECK_THAT(problem_in(R"({"parts":[)" + entry + "," + entry + "]}"), Contains("two parts"));
  std::string many = entry;
  for (int i = 0; i < 64; ++i) many += "," + entry;
  CHECK_THAT(problem_in(R"({"parts":[)" + many + "]}"), Contains("parts"));
}

TEST_CASE("division: one host gets all, several what they demand, the greatest are cut alike") {
  const auto shares = [](std::uint32_t limit, const std::vector<Claim>& claims) {
    std::vector<std::uint32_t> counts;
    for (const Share& share : divide(requests(limit), claims)) counts.push_back(share.concurrent);
    return counts;
  };
  const auto claim = [](std::uint32_t held, std::uint32_t demand) {
    return Claim{requests(held), requests(demand)};
  };
  using Counts = std::vector<std::uint32_t>;
  CHECK(shares(8, {claim(0, 1)}) == Counts{8});
  CHECK(shares(8, {claim(0, 2), claim(0, 9)}) == Counts{2, 6});
  CHECK(shares(9, {claim(9, 9), claim(0, 9), claim(0, 1)}) == Counts{4, 4, 1});
  CHECK(shares(8, {claim(8, 1), claim(0, 2)}) == Counts{6, 2});  // the rest stays where it is
  CHECK(shares(2, {claim(0, 5), claim(0, 5), claim(0, 5)}) == Counts{1, 1, 0});
}

TEST_CASE("division: blocks and tokens follow the requests that a host may run") {
  const Share all{.concurrent = 1, .blocks = 30, .tokens_per_minute = 7};
  CHECK(divide(all, {{{}, all}, {{}, all}, {{}, all}}) == std::vector{all, Share(), Share()});
  Share two = all;
  two.concurrent = 2;
  const Share first{.concurrent = 1, .blocks = 15, .tokens_per_minute = 4};
  const Share second{.concurrent = 1, .blocks = 15, .tokens_per_minute = 3};
  CHECK(divide(two, {{{}, two}, {{}, two}}) == std::vector{first, second});
  CHECK(divide(two, {{two, {}}, {{}, {}}}) == std::vector{two, Share()});  // without any demand
}

TEST_CASE("part: a host that gets the texts of another one uses its limits, once") {
  Cell cell;
  Host a(cell, "a", 8);
  REQUIRE(a.run());
  a.apply();
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

TEST_CASE("part: what replaces a part that has become void counts by itself") {
  Cell cell;
  Host a(cell, "a", 8);
  REQUIRE(a.run());
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

TEST_CASE("part: a replacement is not replaced itself") {
  Cell cell;
  Host a(cell, "a", 8);
  REQUIRE(a.run());
  Host b(cell, "b", 8);
  b.part.replaces(a.owner.host);
  REQUIRE(b.run());
  Host c(cell, "c", 8);
  c.part.replaces(b.owner.host);
  REQUIRE(c.run());
  CHECK(c.limit() == Share());
  CHECK(!cell.ledger().find(c.owner)->instead_of);
}

TEST_CASE("part: a host alone takes all, and gives up what another one demands") {
  Cell cell;
  Host a(cell, "a", 3);
  REQUIRE(a.run());
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

TEST_CASE("part: a report about an earlier limit confirms nothing") {
  Cell cell;
  Host a(cell, "a", 3);
  REQUIRE(a.run());
  a.apply();
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

TEST_CASE("part: a void part is dropped, and only if its host is still gone") {
  Cell cell;
  Host a(cell, "a", 8);
  REQUIRE(a.run());
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

TEST_CASE("part: a lowering that arrives late cannot follow a raise") {
  Cell cell;
  Host a(cell, "a", 3);
  REQUIRE(a.run());
  a.apply();
  a.part.wants({});
  REQUIRE(a.next_write());  // of the demand
  a.part.failed();
  a.apply();
  const auto lowering = a.next_write();
  REQUIRE(lowering);
  a.part.failed();            // it is on its way
  a.part.wants(requests(3));  // as the ledger still says
  REQUIRE(a.run());
  CHECK(a.limit() == requests(8));
  CHECK(!cell.etcd.execute(*lowering).succeeded);
}

TEST_CASE("part: a limit that was lowered and not yet returned is raised again") {
  Cell cell;
  Host a(cell, "a", 3);
  REQUIRE(a.run());
  a.apply();
  a.part.wants({});
  REQUIRE(a.run());
  CHECK(a.limit() == Share());
  a.part.wants(requests(3));  // before the broker has confirmed
  REQUIRE(a.run());
  CHECK(a.limit() == requests(8));
}

TEST_CASE("part: an idle host returns its part") {
  Cell cell;
  Host a(cell, "a", 3);
  REQUIRE(a.run());
  a.apply();
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

TEST_CASE("change: it is applied when every counting part is newer or gone") {
  Cell cell;
  Host a(cell, "a", 3);
  REQUIRE(a.run());
  a.apply();
  const auto change = change_of(kKeys, kAnn, CellPolicy{}, cell.view());
  const auto changed = cell.etcd.execute(change);
  REQUIRE(changed.succeeded);
  CHECK(cell.has_mail("a"));
  CHECK(not_applied(cell.view(), changed.revision) == std::vector{a.owner});
  CHECK(!cell.etcd.execute(change).succeeded);  // it compares what was read

  a.part.look_again();
  REQUIRE(a.run());
  CHECK(a.limit() == Share());
  CHECK(not_applied(cell.view(), changed.revision) == std::vector{a.owner});
  a.apply();
  REQUIRE(a.run());
  CHECK(not_applied(cell.view(), changed.revision).empty());
  CHECK(!cell.has_mail("a"));

  Host b(cell, "b", 3);  // a host that comes later gets nothing
  REQUIRE(b.run());
  CHECK(b.limit() == Share());
}

TEST_CASE("part: a limit that is confirmed before the write is lowered by that write") {
  Cell cell;
  Host a(cell, "a", 8);
  REQUIRE(a.run());
  a.apply();
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
