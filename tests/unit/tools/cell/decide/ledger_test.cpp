// Ledgers, their law, the division, and changes of a tenant.
#include <catch2/catch.hpp>

#include "tests/unit/tools/cell/decide/one_tenant.hpp"
#include "tools/cell/decide/change_progress.hpp"
#include "tools/cell/decide/division.hpp"
#include "tools/cell/decide/tenant_change.hpp"

using namespace leasehold;
using namespace leasehold::cell;
using namespace leasehold::cell::one_tenant;
using Catch::Contains;

namespace {

std::string problem_in(const std::string& value) {
  const auto read = read_ledger(kKeys.ledger(kAnn), value);
  REQUIRE(!read);
  CHECK(read.error().code == Errc::BadRequest);
  CHECK_THAT(read.error().detail, Contains("/leasehold/c/ledger/ann"));
  return read.error().detail;
}

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

TEST_CASE("division: a host gets what a request needs, or nothing") {
  Share few{.concurrent = 8, .blocks = 2, .tokens_per_minute = 1'000};
  const Share all{.concurrent = 4, .blocks = 2, .tokens_per_minute = 1'000};
  const auto shares = divide(few, {{{}, all}, {{}, all}, {{}, all}});
  CHECK(shares[0] == Share{.concurrent = 1, .blocks = 1, .tokens_per_minute = 500});
  CHECK(shares[1] == shares[0]);
  CHECK(shares[2] == Share());
  few.blocks = 100;
  few.tokens_per_minute = 1;
  CHECK(divide(few, {{{}, few}, {{}, few}})[1] == Share());
  // What a host holds beyond its share stays there only if it can be used.
  CHECK(divide(few, {{{}, few}, {few, few}})[1] == Share());
}

TEST_CASE("change: it is applied when every counting part is newer or gone") {
  Cell cell;
  Host a(cell, "a", 3);
  REQUIRE(a.run());
  a.apply();
  const TenantView before = cell.view();
  const auto change = change_of(kKeys, kAnn, CellPolicy{}, before);
  const auto changed = cell.etcd.execute(change);
  REQUIRE(changed.succeeded);
  ChangeProgress progress(kKeys, kAnn, changed.revision, before, std::chrono::milliseconds(100));
  const auto is_done = [&] {
    REQUIRE(progress.replied(cell.etcd.execute(progress.next_read()), TimePoint{1}));
    return progress.is_done();
  };
  CHECK(cell.has_mail("a"));
  CHECK_FALSE(is_done());
  CHECK(!cell.etcd.execute(change).succeeded);  // it compares what was read

  a.part.look_again();
  REQUIRE(a.run());
  CHECK(a.limit() == Share());
  CHECK_FALSE(is_done());
  a.apply();
  REQUIRE(a.run());
  CHECK(is_done());
  CHECK(!cell.has_mail("a"));

  Host b(cell, "b", 3);  // a host that comes later gets nothing
  REQUIRE(b.run());
  CHECK(b.limit() == Share());
}
