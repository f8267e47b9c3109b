// A lease over memory of an ended one: what the records there say is not computed again, and the
// texts are the same.
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/property/four_tenants.hpp"
#include "worker/kv/record_layout.hpp"

namespace leasehold::testing::adoption {
namespace {

constexpr std::uint32_t kTextTokens = 40;
constexpr std::size_t kBlock = KvLayout::kBlockTokens;

PromptRequest long_request(const EngineRig& rig, LeaseId lease, const std::string& id,
                           std::size_t prompt) {
  PromptRequest request =
      rig.request("t", lease, "t/" + id, rig.encode(prompts()[prompt]), kTextTokens);
  request.sampling = {.temperature = 1.0f, .seed = prompt, .ignore_eos = true};
  return request;
}

std::vector<TokenId> alone(std::size_t prompt) {
  EngineRig rig;
  REQUIRE(rig.submit(long_request(rig, rig.grant("t"), "r", prompt)));
  rig.run();
  return rig.outcome("t/r").tokens;
}

/// Continues what ran under an ended lease: its tokens so far, then the rest.
PromptRequest continued(EngineRig& rig, PromptRequest request, LeaseId old, LeaseId fresh) {
  request.emitted = rig.outcome(request.engine_request_id.value).tokens;
  request.rebound_from = old;
  request.lease = fresh;
  return request;
}

struct Stopped {
  EngineRig rig;
  LeaseId lease = rig.grant("t");
  PromptRequest request;

  explicit Stopped(std::uint32_t tokens = 30) {
    request = long_request(rig, lease, "r", 3);
    REQUIRE(rig.submit(request));
    while (rig.outcome("t/r").tokens.size() < tokens) REQUIRE(rig.step());
  }
  BlockId record_block() const { return rig.sequence("t/r")->blocks.record_blocks().front(); }
  /// Changes bytes of the record.
  void overwrite(std::size_t offset, std::uint64_t value, std::size_t size = 8) {
    const BlockId at = record_block();
    const Mapping mapping =
        Mapping::map(rig.extents(lease).at(at.extent).fd(), 2u << 20, MapAccess::ReadWrite).value();
    std::memcpy(mapping.data() + at.index * rig.engine().kv_block_size_bytes() + offset, &value,
                size);
  }
};

}  // namespace

TEST_CASE("adoption: texts continue from the blocks found, and no position is computed again") {
  EngineRig rig;
  const LeaseId old = rig.grant("t", 2);
  std::vector<PromptRequest> requests;
  for (const std::size_t prompt : {0u, 3u, 5u})
    requests.push_back(long_request(rig, old, std::to_string(prompt), prompt));
  for (const PromptRequest& request : requests) REQUIRE(rig.submit(request));
  for (int step = 0; step < 25; ++step) REQUIRE(rig.step());

  const auto [fresh, adopted] = rig.adopt(old, "t");

  CHECK(adopted.records == 3);
  CHECK(adopted.blocks >= 3);
  CHECK(adopted.dropped.empty());
  std::size_t rows = 0;
  int parts = 0;
  for (PromptRequest& request : requests) {
    request = continued(rig, request, old, fresh);
    const std::size_t committed = known_tokens(request) - 1;
    parts += committed % kBlock != 0 ? 1 : 0;
    rows += request.prompt.size() + kTextTokens - 1 - committed;
    REQUIRE(rig.submit(request));
  }
  CHECK(parts >= 2);
  rig.run();
  CHECK(rig.engine().scheduler().tenancies().at(fresh).served_tokens == rows);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const RequestOutcome& outcome = rig.outcome(requests[i].engine_request_id.value);
    CHECK(outcome.tokens == alone(std::vector{0u, 3u, 5u}[i]));
  }
}

TEST_CASE(
    "adoption: a request whose last tokens did not arrive computes those again, and no more") {
  const std::uint32_t lost = GENERATE(1u, 2u, 5u, 14u);
  CAPTURE(lost);
  Stopped before(32);
  const auto [fresh, adopted] = before.rig.adopt(before.lease, "t");
  std::vector<TokenId>& arrived = before.rig.outcome("t/r").tokens;
  arrived.resize(arrived.size() - lost);
  const PromptRequest request = continued(before.rig, before.request, before.lease, fresh);
  const std::size_t committed = known_tokens(request) - 1;
  REQUIRE(before.rig.submit(request));

  before.rig.run();

  const auto& tenancy = before.rig.engine().scheduler().tenancies().at(fresh);
  CHECK(tenancy.served_tokens == request.prompt.size() + kTextTokens - 1 - committed);
  CHECK(arrived == alone(3));
}

TEST_CASE("adoption: a record that is forged or torn is dropped, and the text is the same") {
  Stopped before;
  const std::vector<TokenId> undisturbed = alone(3);
  SECTION("header") {
    const std::size_t offset = GENERATE(8u, 12u, 16u, 152u, 168u, 176u, 216u, 224u, 248u);
    before.overwrite(offset, 0x0101'0101'0101'0101);
  }
  SECTION("both commits") {
    before.overwrite(kSlotsOffset, 1);
    before.overwrite(kSlotsOffset + 64, 1);
  }
  SECTION("a token") {
    before.overwrite(kTokensOffset, 77, 4);
  }
  SECTION("a block") {
    before.overwrite(RecordShape{before.rig.config().n_context}.blocks_offset(), 0x7000'0001);
  }

  const auto [fresh, adopted] = before.rig.adopt(before.lease, "t");

  CHECK(adopted.records == 0);
  CHECK(adopted.blocks == 0);
  REQUIRE(adopted.dropped.size() == 1);
  CHECK(adopted.dropped.front().code == Errc::FileCorrupt);
  REQUIRE(before.rig.submit(continued(before.rig, before.request, before.lease, fresh)));
  before.rig.run();
  CHECK(before.rig.outcome("t/r").tokens == undisturbed);
}

TEST_CASE("adoption: the newer commit torn, the older one is adopted") {
  Stopped before;
  const std::uint64_t number = before.rig.sequence("t/r")->record.number;
  before.overwrite(kSlotsOffset + number % 2 * 64, 1);

  const auto [fresh, adopted] = before.rig.adopt(before.lease, "t");

  CHECK(adopted.records == 1);
  REQUIRE(before.rig.submit(continued(before.rig, before.request, before.lease, fresh)));
  before.rig.run();
  CHECK(before.rig.outcome("t/r").tokens == alone(3));
}

TEST_CASE("adoption: the record of an ended request is cleared before its blocks are used again") {
  EngineRig rig;
  const LeaseId lease = rig.grant("t");
  REQUIRE(rig.submit(long_request(rig, lease, "first", 3)));
  rig.run();
  // The step of another lease, so that nothing else overwrites the record.
  REQUIRE(rig.submit(long_request(rig, rig.grant("t"), "second", 5)));
  REQUIRE(rig.step());

  const auto adopted = rig.adopt(lease, "t").second;

  CHECK(adopted.records == 0);
  CHECK(adopted.dropped.empty());
}

TEST_CASE("adoption: a record is adopted once") {
  Stopped before;
  const auto [fresh, first] = before.rig.adopt(before.lease, "t");
  REQUIRE(first.records == 1);

  const auto second = before.rig.adopt(fresh, "t").second;

  CHECK(second.records == 0);
  CHECK(second.dropped.empty());
}

TEST_CASE("adoption: a lease that is revoked meanwhile gets nothing") {
  Stopped before;
  const auto adopted = before.rig.adopt(before.lease, "t", /*is_revoked=*/true).second;
  CHECK(adopted.records == 0);
  CHECK(adopted.blocks == 0);
}

}  // namespace leasehold::testing::adoption
