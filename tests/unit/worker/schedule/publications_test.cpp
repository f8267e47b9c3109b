// Published texts and their readers, without a scheduler.
#include "worker/schedule/memory/publications.hpp"

#include "tests/unit/worker/schedule/parts_fixture.hpp"

namespace leasehold::testing {
namespace {

/// A shared lease of 4 blocks, and a text of 40 tokens.
struct SharedLease : PartsFixture {
  static constexpr LeaseId kShared{9, 1};

  SharedLease() {
    tenancies.add({.lease = kShared, .tenant = public_owner(), .is_shared = true});
    shared().pool.add_extent(ExtentId{9}, 4);
    std::iota(text.begin(), text.end(), 1);
  }
  Tenancy& shared() { return tenancies.at(kShared); }
  /// Computes and publishes the text.
  void publish() {
    const auto request = publications.fill_request(kShared, text);
    REQUIRE(request);
    Sequence fill(*request, kBlock, 0, limits.window_shape());
    REQUIRE(fill.blocks.reserve(32, shared().pool));
    fill.blocks.commit(32);
    fill.blocks.cache_full({&public_owner(), fill.tokens}, shared().prefixes);
    fill.blocks.trim(32, shared().pool, shared().prefixes);
    publications.end_fill(fill, {.reason = CompletionReason::MaxTokensReached});
  }
  Sequence reader(const Tenancy& tenancy) {
    PromptRequest reads = request(tenancy, "reader", 40);
    reads.prompt = text;
    return Sequence(std::move(reads), kBlock);
  }

  std::vector<TokenId> text = std::vector<TokenId>(40);
  Publications publications{limits, tenancies};
};

}  // namespace

TEST_CASE("publications: a fill computes the full blocks of its text, and reports them") {
  SharedLease test;
  const auto request = test.publications.fill_request(SharedLease::kShared, test.text);
  REQUIRE(request);
  CHECK(request->prompt.size() == 32);
  test.publish();
  const std::vector<PrefixFilled> filled = test.publications.take_filled();
  REQUIRE(filled.size() == 1);
  CHECK(filled[0].lease == SharedLease::kShared);
  CHECK(filled[0].blocks == 2u);
}

TEST_CASE(
    "publications: a fill is refused without a shared lease, a full block or an empty lease") {
  SharedLease test;
  const Publications& publications = test.publications;
  const Tenancy& own = test.lease(1, 4);
  CHECK(publications.fill_request(own.lease, test.text).error().code == Errc::LeaseFenced);
  CHECK(publications.fill_request({8, 1}, test.text).error().code == Errc::LeaseFenced);
  const std::vector<TokenId> little(15, 1);
  CHECK(publications.fill_request(SharedLease::kShared, little).error().code == Errc::BadRequest);
  test.publish();
  const auto again = publications.fill_request(SharedLease::kShared, test.text);
  REQUIRE_FALSE(again);
  CHECK(again.error().code == Errc::BadRequest);
}

TEST_CASE("publications: a failed fill is reported, and a tenant's request is not a fill") {
  SharedLease test;
  const auto fill = test.publications.fill_request(SharedLease::kShared, test.text);
  REQUIRE(fill);
  const Error why{Errc::PoolExhausted, "no block"};
  CHECK(test.publications.fail_fill(*fill, why));
  const std::vector<PrefixFilled> filled = test.publications.take_filled();
  REQUIRE(filled.size() == 1);
  CHECK(filled[0].blocks.error().code == Errc::PoolExhausted);
  CHECK_FALSE(test.publications.fail_fill(test.request(test.lease(1, 4), "tenant", 4), why));
  CHECK(test.publications.take_filled().empty());
}

TEST_CASE("publications: a match is looked up again after a text was published") {
  SharedLease test;
  Tenancy& tenancy = test.lease(1, 4);
  const Sequence reader = test.reader(tenancy);
  CHECK(test.publications.match(tenancy, reader).chain.empty());
  test.publish();
  const PublishedMatch& match = test.publications.match(tenancy, reader);
  CHECK(match.lease == SharedLease::kShared);
  CHECK(match.chain.size() == 2);
}

TEST_CASE("publications: a match is looked up again after its window was evicted") {
  SharedLease test;
  test.limits.window = {.n_groups = 1, .positions = 8};
  test.publish();
  Tenancy& tenancy = test.lease(1, 4);
  test.text.resize(20);  // reads the first block, whose window the text itself has left
  const Sequence reader = test.reader(tenancy);
  CHECK(test.publications.match(tenancy, reader).chain.size() == 1);
  CHECK(test.shared().prefixes.evict(1).size() == 1);
  CHECK(test.publications.match(tenancy, reader).chain.empty());
}

TEST_CASE("publications: a reader references the published blocks until it gives them back") {
  SharedLease test;
  test.publish();
  Tenancy& tenancy = test.lease(1, 4);
  Sequence reader = test.reader(tenancy);
  const PublishedMatch match = test.publications.match(tenancy, reader);
  REQUIRE(match.chain.size() == 2);
  const std::uint32_t before = test.shared().prefixes.references(match.chain[1]);
  test.publications.lend(reader, tenancy, match);
  CHECK(reader.shared_lease == SharedLease::kShared);
  CHECK(reader.blocks.committed() == 32);
  CHECK(test.shared().prefixes.references(match.chain[1]) == before + 1);
  reader.blocks.free(tenancy.pool, tenancy.prefixes);
  test.publications.give_back(reader);
  CHECK_FALSE(reader.shared_lease);
  CHECK(test.shared().prefixes.references(match.chain[1]) == before);
}

}  // namespace leasehold::testing
