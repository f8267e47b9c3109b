// Which adapter leaves when memory or a quota is short.
#include "tests/unit/worker/adapter/adapter_book_fixture.hpp"
#include "worker/adapter/adapter_book.hpp"
#include "worker/adapter/adapter_victim.hpp"

namespace leasehold {
namespace {

using testing::BookFixture;
using testing::error;
using testing::own;
using namespace std::chrono_literals;

}  // namespace

TEST_CASE("adapter book: without room the least recently used adapter leaves, and no held one") {
  BookFixture f;
  AdapterUse held = f.load(own("a", "t"), {1, 1}, "t");
  f.clock.advance(1s);
  f.load(own("b", "t"), {2, 1}, "t");
  f.clock.advance(1s);
  f.load(own("c", "t"), {3, 1}, "t");
  f.use("t", "d");
  f.resolved("t", "d", own("d", "t"));
  const AdapterLoadId load = f.only<OpenAdapterFile>().load;
  f.opened_file(load);
  f.book.take_actions();

  f.opened_lease(load, std::unexpected(error(Errc::PoolExhausted, 30)));

  const auto actions = f.book.take_actions();
  REQUIRE(actions.size() == 3);
  CHECK(std::get<CloseAdapterLease>(actions[0]).lease == LeaseId{2, 1});
  CHECK(std::get<ReportAdapterEvicted>(actions[1]).why == AdapterEviction::Room);
  CHECK(std::get<OpenAdapterLease>(actions[2]).load == load);
  CHECK(held.use_count() == 2);
}

TEST_CASE("adapter book: the memory of an evicted adapter is awaited before the next one leaves") {
  BookFixture f;
  f.load(own("a", "t"), {1, 1}, "t");
  f.load(own("b", "t"), {2, 1}, "t");
  f.use("t", "d");
  f.resolved("t", "d", own("d", "t"));
  const AdapterLoadId load = f.only<OpenAdapterFile>().load;
  f.opened_file(load);
  f.opened_lease(load, std::unexpected(error(Errc::PoolExhausted, 150)));
  f.book.take_actions();

  f.opened_lease(load, std::unexpected(error(Errc::PoolExhausted, 150)));

  CHECK(f.book.take_actions().empty());
  CHECK(f.tick() == f.clock.now() + kFreedRetryDelay);
  f.clock.advance(kFreedRetryDelay);
  f.tick();
  f.only<OpenAdapterLease>();
  f.clock.advance(AdapterBook::kReclaimTime);
  f.opened_lease(load, std::unexpected(error(Errc::PoolExhausted, 150)));
  CHECK(f.only<CloseAdapterLease>().lease == LeaseId{2, 1});
}

TEST_CASE("adapter book: for a text only the named idle adapters leave, the tenant's own first") {
  BookFixture f;
  const AdapterUse held = f.load(own("a", "t"), {1, 1}, "t");
  f.load(own("b", "u"), {2, 1}, "u");
  f.clock.advance(1s);
  f.load(own("c", "u"), {3, 1}, "u");
  f.clock.advance(1s);
  f.load(own("d", "t"), {4, 1}, "t");
  ResolvedAdapter pinned = own("e", "t");
  pinned.is_pinned = true;
  f.load(pinned, {5, 1}, "t");

  f.book.yield({.tenant = {"t"},
                .leases = {{1, 1}, {3, 1}, {4, 1}, {5, 1}},
                .size_bytes = 3 * BookFixture::kSize},
               f.clock.now());

  const auto closed = f.take<CloseAdapterLease>();
  REQUIRE(closed.size() == 2);
  CHECK(closed[0].lease == LeaseId{4, 1});
  CHECK(closed[1].lease == LeaseId{3, 1});
  CHECK(held.use_count() == 2);
}

TEST_CASE("adapter book: asked again for the same text, it awaits what has left") {
  BookFixture f;
  f.load(own("a", "t"), {1, 1}, "t");
  f.load(own("b", "t"), {2, 1}, "t");
  const wire::AdaptersYield asked{
      .tenant = {"u"}, .leases = {{1, 1}, {2, 1}}, .size_bytes = BookFixture::kSize};
  f.book.yield(asked, f.clock.now());
  CHECK(f.only<CloseAdapterLease>().lease == LeaseId{1, 1});

  f.book.yield(asked, f.clock.now());
  CHECK(f.book.take_actions().empty());
  f.clock.advance(AdapterBook::kReclaimTime);
  f.book.yield(asked, f.clock.now());
  CHECK(f.only<CloseAdapterLease>().lease == LeaseId{2, 1});
}

TEST_CASE("adapter book: without memory callers wait as the broker says, and at most a minute") {
  BookFixture f;
  f.use("t", "law");
  f.resolved("t", "law", own("law", "t"));
  const AdapterLoadId load = f.only<OpenAdapterFile>().load;
  f.opened_file(load);
  f.book.take_actions();
  const TimePoint began = f.clock.now();
  std::uint32_t attempts = 0;
  while (f.clock.now() < began + kAdapterTimeout) {
    f.opened_lease(load, std::unexpected(error(Errc::PoolExhausted, 2'000)));
    const TimePoint due = f.tick();
    f.clock.advance(due - f.clock.now());
    f.tick();
    ++attempts;
  }

  CHECK(attempts == 30);
  const auto answer = f.only<AnswerAdapterUse>();
  CHECK(answer.use.error().code == Errc::PoolExhausted);
  CHECK(answer.use.error().retry_after_ms == 2'000);
}

TEST_CASE("adapter book: for a quota only the owner's adapters leave; without one the load fails") {
  BookFixture f;
  f.load(own("other", "u"), {1, 1}, "u");
  f.clock.advance(1s);
  const bool has_own = GENERATE(false, true);
  if (has_own) f.load(own("mine", "t"), {2, 1}, "t");
  f.use("t", "law");
  f.resolved("t", "law", own("law", "t"));
  const AdapterLoadId load = f.only<OpenAdapterFile>().load;
  f.opened_file(load);
  f.book.take_actions();

  f.opened_lease(load, std::unexpected(error(Errc::QuotaAdapters)));

  if (has_own) {
    CHECK(f.only<CloseAdapterLease>().lease == LeaseId{2, 1});
  } else {
    CHECK(f.only<AnswerAdapterUse>().use.error().code == Errc::QuotaAdapters);
  }
  CHECK(f.book.loads().contains(AdapterLoadId{1}));
}

TEST_CASE("adapter victim: the owner's own leave before others, pinned and held ones never") {
  const TenantId t{"t"};
  const TenantId u{"u"};
  std::vector<EvictionCandidate> all{
      {.owner = u, .is_idle = true, .last_used = {1}},
      {.owner = t, .is_idle = true, .last_used = {9}},
      {.owner = t, .is_pinned = true, .is_idle = true, .last_used = {2}},
      {.owner = t, .is_idle = false, .last_used = {3}},
  };
  CHECK(adapter_victim(all, t, RoomIn::Pool) == 1u);
  CHECK(adapter_victim(all, u, RoomIn::Pool) == 0u);
  CHECK(adapter_victim(all, std::nullopt, RoomIn::Pool) == 0u);
  CHECK_FALSE(adapter_victim(all, std::nullopt, RoomIn::Quota));
  all[1].is_idle = false;
  CHECK(adapter_victim(all, t, RoomIn::Pool) == 0u);
  CHECK_FALSE(adapter_victim(all, t, RoomIn::Quota));
}

}  // namespace leasehold
