#include "worker/adapter/adapter_book.hpp"

#include "tests/unit/worker/adapter/adapter_book_fixture.hpp"

namespace leasehold {
namespace {

using testing::BookFixture;
using testing::error;
using testing::own;
using namespace std::chrono_literals;

constexpr LeaseId kLease{4, 1};
constexpr LeaseId kNextLease{5, 1};

}  // namespace

TEST_CASE("adapter book: many callers wait for one load, and all get the same adapter") {
  BookFixture f;
  const AdapterTicket first = f.use("t", "law");
  const AdapterTicket second = f.use("t", "law");
  CHECK(f.only<ResolveAdapter>() == ResolveAdapter{TenantId{"t"}, "law"});

  f.resolved("t", "law", own("law", "t"));
  const AdapterTicket third = f.use("t", "law");
  const auto file = f.only<OpenAdapterFile>();
  CHECK(file.file == "law.gguf");
  f.opened_file(file.load);
  CHECK(f.only<OpenAdapterLease>() ==
        OpenAdapterLease{
            file.load, TenantId{"t"}, "law", 1, {{}, BookFixture::kSize, BookFixture::kSize}});
  f.opened_lease(file.load, kLease);
  CHECK(f.only<CopyAdapter>() == CopyAdapter{file.load, kLease});
  f.copied(file.load);
  CHECK(f.only<ConfirmAdapter>() == ConfirmAdapter{file.load, kLease});
  f.confirmed(file.load);

  const auto answers = f.take<AnswerAdapterUse>();
  REQUIRE(answers.size() == 3);
  CHECK(answers[0].ticket == first);
  CHECK(answers[1].ticket == second);
  CHECK(answers[2].ticket == third);
  for (const AnswerAdapterUse& answer : answers) CHECK(answer.use == answers[0].use);
  CHECK((*answers[0].use)->lease == kLease);
}

TEST_CASE("adapter book: a loaded adapter is given at once, without a call") {
  BookFixture f;
  const AdapterUse loaded = f.load(own("law", "t"), kLease, "t");

  f.use("t", "law");

  const auto actions = f.book.take_actions();
  REQUIRE(actions.size() == 1);
  CHECK(std::get<AnswerAdapterUse>(actions[0]).use == loaded);
}

TEST_CASE("adapter book: tenants that share an adapter share its memory") {
  BookFixture f;
  ResolvedAdapter shared = own("law", "t");
  shared.owner.reset();
  const AdapterUse loaded = f.load(shared, kLease, "t");

  f.use("u", "law");
  f.only<ResolveAdapter>();
  f.resolved("u", "law", shared);

  CHECK(f.only<AnswerAdapterUse>().use == loaded);
}

TEST_CASE(
    "adapter book: a load that fails ends its waiters with its error, and the next tries again") {
  const auto code = GENERATE(Errc::FileCorrupt, Errc::MissingWeight, Errc::UnsupportedModel);
  BookFixture f;
  f.use("t", "law");
  f.use("t", "law");
  f.resolved("t", "law", own("law", "t"));
  const AdapterLoadId load = f.only<OpenAdapterFile>().load;

  f.book.file_opened(load, std::unexpected(error(code)));

  const auto answers = f.take<AnswerAdapterUse>();
  REQUIRE(answers.size() == 2);
  for (const AnswerAdapterUse& answer : answers) {
    REQUIRE_FALSE(answer.use);
    CHECK(answer.use.error().code == code);
    CHECK(answer.use.error().scope == FailureScope::Adapter);
  }
  f.use("t", "law");
  CHECK(f.only<OpenAdapterFile>().load != load);
}

TEST_CASE("adapter book: an unknown name is asked for each time") {
  BookFixture f;
  for (int i = 0; i < 2; ++i) {
    f.use("t", "law");
    f.only<ResolveAdapter>();
    f.resolved("t", "law", std::unexpected(error(Errc::UnknownAdapter)));
    CHECK(f.only<AnswerAdapterUse>().use.error().code == Errc::UnknownAdapter);
  }
}

TEST_CASE("adapter book: a file that is corrupt while it is copied gives the lease back") {
  BookFixture f;
  f.use("t", "law");
  f.resolved("t", "law", own("law", "t"));
  const AdapterLoadId load = f.only<OpenAdapterFile>().load;
  f.opened_file(load);
  f.opened_lease(load, kLease);
  f.book.take_actions();

  f.book.copied(load, std::unexpected(error(Errc::FileCorrupt)), f.clock.now());

  CHECK(f.only<CloseAdapterLease>().lease == kLease);
  CHECK(f.book.loads().empty());
}

TEST_CASE(
    "adapter book: a lease revoked while it is filled is replaced, a limited number of times") {
  BookFixture f;
  f.use("t", "law");
  f.resolved("t", "law", own("law", "t"));
  AdapterLoadId load = f.only<OpenAdapterFile>().load;
  for (std::uint64_t i = 0; i < AdapterBook::kMaxReloads; ++i) {
    f.opened_file(load);
    const LeaseId lease{4, i + 1};
    f.opened_lease(load, lease);
    f.book.take_actions();
    f.book.lease_lost(lease, f.clock.now());
    const AdapterLoadId next = f.only<OpenAdapterFile>().load;
    CHECK(next != load);
    f.copied(load);  // the copy of the earlier attempt ends late
    CHECK(f.book.take_actions().empty());
    load = next;
  }
  f.opened_file(load);
  f.opened_lease(load, kNextLease);
  f.book.take_actions();

  f.book.lease_lost(kNextLease, f.clock.now());

  const auto answer = f.only<AnswerAdapterUse>();
  CHECK(answer.use.error().code == Errc::LeaseRevoked);
  CHECK(answer.use.error().scope == FailureScope::Adapter);
}

TEST_CASE("adapter book: after a revocation the next request loads the adapter again") {
  BookFixture f;
  const AdapterUse held = f.load(own("law", "t"), kLease, "t");

  f.book.lease_lost(kLease, f.clock.now());
  CHECK(f.only<ReportAdapterEvicted>() == ReportAdapterEvicted{held, AdapterEviction::Revoked});
  f.use("t", "law");

  const AdapterUse again = f.finish(f.only<OpenAdapterFile>().load, kNextLease);
  CHECK(again != held);
  CHECK(again->lease == kNextLease);
}

TEST_CASE("adapter book: a lease that arrives for a load that has ended is given back") {
  BookFixture f;
  f.use("t", "law");
  f.resolved("t", "law", own("law", "t"));
  const AdapterLoadId load = f.only<OpenAdapterFile>().load;
  f.opened_file(load);
  f.resolved("t", "law", std::unexpected(error(Errc::UnknownAdapter)));  // removed meanwhile
  f.book.take_actions();

  f.opened_lease(load, kLease);

  CHECK(f.only<CloseAdapterLease>().lease == kLease);
}

// -------------------------------------------------------------------------------------- versions

TEST_CASE("adapter book: running requests keep their version, new ones get the new version") {
  BookFixture f;
  AdapterUse held = f.load(own("law", "t", 1), kLease, "t");

  f.book.changed();
  CHECK(f.only<ResolveAdapter>() == ResolveAdapter{TenantId{"t"}, "law"});
  f.use("t", "law");
  CHECK(f.book.take_actions().empty());  // the call is on its way
  f.resolved("t", "law", own("law", "t", 2));

  const AdapterUse next = f.finish(f.only<OpenAdapterFile>().load, kNextLease);
  CHECK(next->version == 2);
  f.tick();
  CHECK(f.book.take_actions().empty());  // the first one is in use
  held.reset();
  CHECK(f.tick() == kNoRetry);
  CHECK(f.only<CloseAdapterLease>().lease == kLease);
  CHECK(f.book.loads().size() == 1);
}

TEST_CASE("adapter book: a removed adapter leaves, and is given to no new request") {
  BookFixture f;
  AdapterUse held = f.load(own("law", "t"), kLease, "t");
  f.book.changed();
  f.resolved("t", "law", std::unexpected(error(Errc::UnknownAdapter)));
  f.book.take_actions();

  f.use("t", "law");

  f.only<ResolveAdapter>();
  f.resolved("t", "law", std::unexpected(error(Errc::UnknownAdapter)));
  CHECK(f.only<AnswerAdapterUse>().use.error().code == Errc::UnknownAdapter);
  CHECK(f.tick() == f.clock.now() + AdapterBook::kDrainInterval);
  held.reset();
  f.tick();
  CHECK(f.only<CloseAdapterLease>().lease == kLease);
}

TEST_CASE("adapter book: waiters of a version that was replaced get the next version") {
  BookFixture f;
  f.use("t", "law");
  f.resolved("t", "law", own("law", "t", 1));
  const AdapterLoadId load = f.only<OpenAdapterFile>().load;
  f.opened_file(load);
  f.opened_lease(load, kLease);
  f.book.changed();
  f.book.take_actions();

  f.resolved("t", "law", own("law", "t", 2));

  const auto actions = f.book.take_actions();
  REQUIRE(actions.size() == 3);
  CHECK(std::get<DropAdapterFile>(actions[0]).load == load);
  CHECK(std::get<CloseAdapterLease>(actions[1]).lease == kLease);
  CHECK(f.finish(std::get<OpenAdapterFile>(actions[2]).load, kNextLease)->version == 2);
}

TEST_CASE(
    "adapter book: a version that is gone when it is opened is asked for again, three times") {
  BookFixture f;
  f.use("t", "law");
  for (std::uint32_t version = 1; version <= 3; ++version) {
    f.resolved("t", "law", own("law", "t", version));
    const AdapterLoadId load = f.only<OpenAdapterFile>().load;
    f.opened_file(load);
    f.book.take_actions();
    f.opened_lease(load, std::unexpected(error(Errc::UnknownAdapter)));
    if (version < 3) CHECK(f.only<ResolveAdapter>().name == "law");
  }
  CHECK(f.only<AnswerAdapterUse>().use.error().code == Errc::UnknownAdapter);
}

TEST_CASE(
    "adapter book: an unloaded adapter leaves when it is idle, unless a request comes first") {
  BookFixture f;
  AdapterUse held = f.load(own("law", "t"), kLease, "t");
  f.book.unload("law");
  f.tick();
  CHECK(f.book.take_actions().empty());
  const bool request_comes = GENERATE(false, true);
  if (request_comes) f.use("t", "law");
  f.book.take_actions();

  held.reset();
  f.tick();

  CHECK(f.take<CloseAdapterLease>().size() == (request_comes ? 0 : 1));
}

// ------------------------------------------------------------------------------- a broker restart

TEST_CASE("adapter book: while the broker is away calls are repeated, and loaded adapters serve") {
  BookFixture f;
  const AdapterUse loaded = f.load(own("here", "t"), {1, 1}, "t");
  f.use("t", "law");
  f.book.take_actions();
  f.resolved("t", "law", std::unexpected(error(Errc::ConnectionLost)));

  f.use("t", "here");
  CHECK(f.only<AnswerAdapterUse>().use == loaded);
  CHECK(f.tick() == f.clock.now() + kAdapterRetryDelay);
  f.clock.advance(kAdapterRetryDelay);
  f.tick();
  f.only<ResolveAdapter>();

  f.resolved("t", "law", own("law", "t"));
  const AdapterLoadId load = f.only<OpenAdapterFile>().load;
  f.opened_file(load);
  f.opened_lease(load, kLease);
  f.copied(load);
  f.book.take_actions();
  f.confirmed(load, std::unexpected(error(Errc::ConnectionLost)));
  f.clock.advance(kAdapterRetryDelay);
  f.tick();
  CHECK(f.only<ConfirmAdapter>() == ConfirmAdapter{load, kLease});
  f.confirmed(load);
  CHECK(f.only<AnswerAdapterUse>().use);
}

TEST_CASE("adapter book: a lease that a broker restart ended while it was filled is opened again") {
  BookFixture f;
  f.use("t", "law");
  f.resolved("t", "law", own("law", "t"));
  const AdapterLoadId load = f.only<OpenAdapterFile>().load;
  f.opened_file(load);
  f.opened_lease(load, kLease);
  f.copied(load);
  f.book.take_actions();

  f.confirmed(load, std::unexpected(error(Errc::UnknownLease)));

  CHECK(f.only<OpenAdapterFile>().file == "law.gguf");
}

TEST_CASE("adapter book: callers that no broker answers for a minute get BrokerLost") {
  BookFixture f;
  f.use("t", "law");
  f.book.take_actions();
  f.resolved("t", "law", std::unexpected(error(Errc::ConnectionLost)));
  f.clock.advance(kAdapterTimeout - 1ns);
  f.tick();
  CHECK(f.take<AnswerAdapterUse>().empty());
  f.clock.advance(1ns);

  f.tick();

  CHECK(f.only<AnswerAdapterUse>().use.error().code == Errc::BrokerLost);
}

}  // namespace leasehold
