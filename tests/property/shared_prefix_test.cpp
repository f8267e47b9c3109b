/// Sequences that read a published text give the bits of those that compute it, and end with its
/// lease; the others do not notice.
#include <catch2/catch.hpp>

#include "tests/property/four_tenants.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kReaderTokens = 20;
constexpr std::uint32_t kBlockRows = KvLayout::kBlockTokens;

std::string published_text() {
  std::string text = prompts()[0];
  for (std::size_t i = 1; i < prompts().size(); ++i) text += " and " + prompts()[i];
  return text + " and " + text;
}

PromptRequest reader_request(const EngineRig& rig, LeaseId lease, const std::string& id,
                             const std::string& tenant) {
  return rig.request(tenant, lease, id, rig.encode(published_text()), kReaderTokens);
}

RigOptions small_steps() {
  RigOptions small = BackendUnderTest{1}.options(KvType::F16);
  small.limits = {.max_batch_size = 8, .token_budget = 24};
  return small;
}

/// What a request gets that computes its whole prompt: tokens, and the logits behind each.
struct Cold {
  std::vector<TokenId> tokens;
  Run logits;
};

Run run_with_logits(EngineRig& rig, const std::string& id) {
  Run logits;
  while (rig.engine().scheduler().has_work()) {
    REQUIRE(rig.step());
    append_last_logits(rig, id, logits);
  }
  return logits;
}

Cold run_cold() {
  EngineRig rig(small_steps());
  REQUIRE(rig.submit(reader_request(rig, rig.grant("t"), "cold", "t")));
  Run logits = run_with_logits(rig, "cold");
  return {rig.outcome("cold").tokens, std::move(logits)};
}

PrefixCounters hit_counters(const EngineRig& rig) {
  return rig.engine().scheduler().tenancies().prefix_counters();
}

const Completed& only_end(EngineRig& rig, const std::string& id) {
  return rig.completion(id);
}

}  // namespace

TEST_CASE("shared prefix: two tenants that read one published text give the bits of a cold run") {
  const Cold cold = run_cold();
  EngineRig rig(small_steps());
  const std::vector<TokenId> text = rig.encode(published_text());
  const LeaseId shared = rig.publish(text);
  const auto published = static_cast<std::uint32_t>(text.size() / kBlockRows);
  const auto borrowed = static_cast<std::uint32_t>((text.size() - 1) / kBlockRows);
  REQUIRE(rig.engine().scheduler().tenancies().at(shared).published.size() == published);

  REQUIRE(rig.submit(reader_request(rig, rig.grant("ann"), "a", "ann")));
  REQUIRE(rig.submit(reader_request(rig, rig.grant("bob"), "b", "bob")));
  REQUIRE(rig.step());
  for (const char* id : {"a", "b"}) {
    REQUIRE(rig.sequence(id)->shared_lease == shared);
    REQUIRE(rig.sequence(id)->blocks.published_blocks() == borrowed);
  }
  rig.run();
  REQUIRE(rig.outcome("a").tokens == cold.tokens);
  REQUIRE(rig.outcome("b").tokens == cold.tokens);
  REQUIRE(rig.submit(reader_request(rig, rig.grant("eve"), "c", "eve")));
  REQUIRE(same_bits(run_with_logits(rig, "c"), cold.logits));
  REQUIRE(hit_counters(rig).shared_hits == 3 * borrowed);
  REQUIRE(hit_counters(rig).cross_tenant_hits == 0);
}

TEST_CASE("shared prefix: its bytes stay as the fill wrote them") {
  EngineRig rig(small_steps());
  const LeaseId shared = rig.publish(rig.encode(published_text()));
  const Tenancy& tenancy = rig.engine().scheduler().tenancies().at(shared);
  std::vector<BlockId> blocks;
  for (const PrefixId id : tenancy.published) blocks.push_back(tenancy.prefixes.block(id));
  const std::vector<std::byte> before = rig.bytes_of(shared, blocks);
  REQUIRE(rig.submit(reader_request(rig, rig.grant("ann"), "a", "ann")));
  rig.run();
  REQUIRE(only_end(rig, "a").reason == CompletionReason::MaxTokensReached);
  REQUIRE(rig.bytes_of(shared, blocks) == before);
}

TEST_CASE("shared prefix: what a tenant cached is never lent, published or not") {
  EngineRig rig(small_steps());
  REQUIRE(rig.submit(reader_request(rig, rig.grant("victim"), "secret", "victim")));
  rig.run();
  (void)rig.publish(rig.encode(prompts()[1] + " " + prompts()[2] + " " + prompts()[3]));
  REQUIRE(rig.submit(reader_request(rig, rig.grant("curious"), "guess", "curious")));
  REQUIRE(rig.step());
  REQUIRE(hit_counters(rig).cross_tenant_hits == 0);
  REQUIRE_FALSE(rig.sequence("guess")->shared_lease);
  rig.run();
  REQUIRE(hit_counters(rig).hits == 0);
  REQUIRE(hit_counters(rig).shared_hits == 0);
}

TEST_CASE("shared prefix: a revoked text ends its readers within one unit, and no other") {
  const Cold cold = run_cold();
  UnitWatch watch;
  RigOptions watched = small_steps();
  watched.probe = &watch;
  for (const std::size_t at : {0u, 9u, 31u, 70u}) {
    CAPTURE(at);
    EngineRig rig(watched);
    const LeaseId bystander = rig.grant("eve");
    REQUIRE(rig.submit(reader_request(rig, bystander, "bystander", "eve")));
    REQUIRE(rig.step());  // before the text is published
    const LeaseId shared = rig.publish(rig.encode(published_text()));
    const LeaseId ann = rig.grant("ann"), bob = rig.grant("bob");
    REQUIRE(rig.submit(reader_request(rig, ann, "a", "ann")));
    REQUIRE(rig.submit(reader_request(rig, bob, "b", "bob")));
    while (rig.outcome("b").tokens.size() < 3) REQUIRE(rig.step());

    watch.start(at, [&] { rig.revoke(shared); });
    REQUIRE(rig.step());
    watch.stop();
    REQUIRE(watch.acted());
    for (const char* id : {"a", "b"}) {
      REQUIRE(only_end(rig, id).reason == CompletionReason::Revoked);
      REQUIRE(only_end(rig, id).revocation->lease == shared);
      REQUIRE(only_end(rig, id).revocation->scope == FailureScope::Shared);
    }
    rig.drop(shared);
    rig.run();
    REQUIRE(rig.outcome("bystander").tokens == cold.tokens);
    REQUIRE(only_end(rig, "bystander").reason == CompletionReason::MaxTokensReached);
    for (const auto& [id, lease, tenant] :
         {std::tuple("a", ann, "ann"), std::tuple("b", bob, "bob")}) {
      PromptRequest rest = reader_request(rig, lease, id, tenant);  // under its own, live lease
      rest.emitted = rig.outcome(id).tokens;
      REQUIRE(rest.emitted.size() < kReaderTokens);
      REQUIRE(rig.submit(rest));
      rig.run();
      REQUIRE(rig.outcome(id).tokens == cold.tokens);
    }
  }
}

TEST_CASE("shared prefix: a preempted reader reads the text again, with the bits of a cold run") {
  const Cold cold = run_cold();
  RigOptions tight = small_steps();
  const std::size_t block_bytes = EngineRig(tight).engine().kv_block_size_bytes();
  const std::size_t text_blocks = EngineRig(tight).encode(published_text()).size() / kBlockRows;
  tight.extent_bytes = (text_blocks + 4) * block_bytes;
  EngineRig rig(tight);
  const LeaseId shared = rig.publish(rig.encode(published_text()));
  const LeaseId ann = rig.grant("ann");
  const std::vector<std::string> ids{"a", "b", "c", "d", "e", "f", "g", "h"};
  for (const std::string& id : ids) REQUIRE(rig.submit(reader_request(rig, ann, id, "ann")));
  while (rig.engine().scheduler().has_work()) {
    for (const GrowthRequest& growth : rig.engine().take_growth_requests())
      rig.engine().deny_growth(growth);
    REQUIRE(rig.step());
  }
  std::size_t preemptions = 0;
  for (const std::string& id : ids) {
    REQUIRE(only_end(rig, id).reason == CompletionReason::MaxTokensReached);
    REQUIRE(rig.outcome(id).tokens == cold.tokens);
    preemptions += rig.outcome(id).preemptions.size();
  }
  REQUIRE(preemptions > 0);
  const auto borrowed = (rig.encode(published_text()).size() - 1) / kBlockRows;
  REQUIRE(hit_counters(rig).shared_hits > ids.size() * borrowed);
  REQUIRE(rig.engine().scheduler().tenancies().contains(shared));
}

TEST_CASE("shared prefix: a block of a fenced text is LeaseFenced, also for its former reader") {
  EngineRig rig(small_steps());
  const LeaseId shared = rig.publish(rig.encode(published_text()));
  const LeaseId ann = rig.grant("ann");
  REQUIRE(rig.submit(reader_request(rig, ann, "a", "ann")));
  REQUIRE(rig.step());
  rig.revoke(shared);
  rig.fence(shared);
  REQUIRE(rig.engine().unmap_lease(shared));  // between the read of the words and the step
  const Result<StepReport> report = rig.engine().step();
  REQUIRE(report);
  const auto* end = std::get_if<Completed>(&report->events.at(0));
  REQUIRE(end != nullptr);
  REQUIRE(end->reason == CompletionReason::Revoked);
  REQUIRE(end->revocation->scope == FailureScope::Shared);
}

TEST_CASE("shared prefix: a text shorter than a block is refused, and one that cannot fit ends") {
  EngineRig rig(small_steps());
  const LeaseId ann = rig.grant("ann");
  std::vector<TokenId> text = rig.encode(published_text());
  REQUIRE(rig.engine().fill(ann, text).error().code == Errc::LeaseFenced);  // not a shared lease
  const LeaseId shared = rig.publish(text);
  REQUIRE(rig.engine().fill(shared, text).error().code == Errc::BadRequest);  // filled already
  text.resize(kBlockRows - 1);
  REQUIRE_THROWS(rig.publish(text));
}

}  // namespace leasehold::testing
