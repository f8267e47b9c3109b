/// The block tables of a step, for a model whose layers partly have a window.
#include "worker/engine/step_batch.hpp"

#include <catch2/catch.hpp>

#include "tests/support/engine_rig.hpp"
#include "tests/support/required.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kTextTokens = 150;
constexpr std::uint32_t kBudget = 16;

struct WindowRig : EngineRig {
  WindowRig()
      : EngineRig({.model_path = test_data_path("models-2026/tiny-gemma3-f32.gguf"),
                   .limits = {.token_budget = kBudget}}) {
    PromptRequest asked =
        request("t", lease, "r", std::vector<TokenId>(kTextTokens / 2, 30), kTextTokens / 2);
    asked.sampling.ignore_eos = true;
    REQUIRE(submit(asked));
  }
  /// The memory of the lease, as the engine maps it.
  void map_into(LeaseMemory& memory) {
    for (const auto& [id, object] : extents(lease))
      memory.add(lease, id,
                 required(LeasedMapping::map(object.fd(), RigOptions{}.extent_bytes,
                                             MapAccess::ReadWrite)));
  }
  const KvWindow& window() const { return engine().scheduler().fit().limits().window; }

  LeaseId lease = grant("t");
};

}  // namespace

TEST_CASE("step batch: the tables of layers with a window begin with the window") {
  WindowRig rig;
  const std::uint32_t n_groups = rig.window().n_groups;
  REQUIRE(n_groups > 0);
  LeaseMemory memory(rig.engine().kv_block_size_bytes());
  rig.map_into(memory);
  std::uint32_t left = 0;
  while (rig.step() && rig.sequence("r") != nullptr) {
    Sequence* const sequence = rig.engine().scheduler().running().all().front().get();
    NullRefusalListener ignored;
    StepBatch batch(1, rig.running_requests().stops(), ignored);
    REQUIRE(batch.add({.sequence = sequence, .n_rows = 1}, memory, rig.table()));
    const auto tables = batch.input().block_tables;
    REQUIRE(tables.size() == 1 + n_groups);
    CHECK(tables[0].first == 0);
    CHECK(tables[0].blocks.size() == sequence->blocks.blocks().size());
    const std::uint32_t next = sequence->blocks.committed();
    for (const BlockTableView& table : tables.subspan(1)) {
      CHECK(table.first <= rig.window().first_block(next));
      CHECK(table.blocks.size() <= rig.window().most_blocks(kBudget));
      for (std::uint32_t block = 0; block < sequence->blocks.committed_blocks(); ++block)
        CHECK(bool{table[block]} == (block >= table.first));
      left = std::max(left, table.first);
    }
  }
  CHECK(left > kTextTokens / KvLayout::kBlockTokens / 2);
}

}  // namespace leasehold::testing
