/// A pool that is too small for all requests changes when they run, and none of their tokens.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/property/damaged_model.hpp"
#include "tests/property/tight_workload.hpp"
#include "tests/support/test_seed.hpp"
#include "worker/kv/sequence_record.hpp"

namespace leasehold::testing {

TEST_CASE("preemption: random requests in a tiny pool get the tokens that they get alone") {
  const std::uint64_t seed = test_seed(7);
  CAPTURE(seed);
  const std::string model = model_with_nan_embedding(kPoisonedTight);
  TightWorkload workload(seed, model, tight_answers_alone(model));
  std::filesystem::remove(model);
  for (int i = 0; i < 10'000; ++i) workload.operate();
  workload.finish();
  // Or the workload proves nothing.
  CHECK(workload.completed > 300);
  CHECK(workload.faults > 20);
  CHECK(workload.cancelled_waiting > 20);
  CHECK(workload.revoked_waiting > 20);
  CHECK(workload.preempted > 300);
  CHECK(workload.preempted_kinds.size() >= 5);
}

TEST_CASE(
    "preemption: a request that goes on has the bits and the record of one that never waited") {
  const TightKind& kind = tight_kinds()[GENERATE(0u, 1u, 4u)];
  Run expected;
  TightRig calm(100);
  REQUIRE(calm.submit(calm.request_of(kind, "t", calm.grant("t"), "younger")));
  while (calm.engine().scheduler().has_work()) {
    REQUIRE(calm.step());
    append_last_logits(calm, "younger", expected);
  }
  TightRig rig(TightRig::blocks(4, 2));
  const LeaseId lease = rig.grant("t");
  REQUIRE(rig.submit(rig.request_of(tight_kinds()[0], "t", lease, "older")));
  REQUIRE(rig.submit(rig.request_of(kind, "t", lease, "younger")));
  Run got;
  int records = 0;
  while (rig.engine().scheduler().has_work()) {
    rig.step_without_growth();
    append_last_logits(rig, "younger", got);
    const Sequence* sequence = rig.sequence("younger");
    if (sequence == nullptr || sequence->record.number == 0) continue;
    if (rig.outcome("younger").preemptions.empty()) continue;
    const auto bytes = rig.bytes_of(lease, sequence->blocks.record_blocks());
    const Result<SequenceRecord> record = read_record(bytes, {rig.config().n_context});
    REQUIRE(record);
    REQUIRE(record->tokens == sequence->tokens);
    REQUIRE(record->prompt_tokens == sequence->request.prompt.size());
    REQUIRE(std::ranges::equal(record->blocks, sequence->blocks.blocks_of(record->committed)));
    ++records;
  }
  CHECK_FALSE(rig.outcome("younger").preemptions.empty());
  CHECK(records > 3);
  CHECK(rig.outcome("younger").tokens == calm.outcome("younger").tokens);
  CHECK(same_bits(got, expected));
}

}  // namespace leasehold::testing
