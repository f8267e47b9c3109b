/// Blocks that go to the spill file and back hold the same bits, and a file that is damaged or does
/// not answer changes no text.
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/property/damaged_model.hpp"
#include "tests/property/tight_workload.hpp"
#include "tests/support/test_seed.hpp"

namespace leasehold::testing {
namespace {

std::uint64_t kv_block_size() {
  static const std::uint64_t size = EngineRig().engine().kv_block_size_bytes();
  return size;
}

}  // namespace

TEST_CASE("spill: random requests get the tokens they get alone, whatever happens to the file") {
  const std::uint64_t seed = test_seed(7);
  const bool damages = GENERATE(false, true);
  CAPTURE(seed, damages);
  SpillRig spill(40, kv_block_size());
  spill.damages = damages;
  const std::string model = model_with_nan_embedding(kPoisonedTight);
  TightWorkload workload(seed, model, tight_answers_alone(model), /*lends_swap=*/true,
                         /*swap_blocks=*/2);
  std::filesystem::remove(model);
  workload.lend_spill(spill);
  for (int i = 0; i < 15'000; ++i) workload.operate();
  workload.finish();
  using Kind = SpillEvent::Kind;
  CAPTURE(workload.spills[Kind::Spilled], workload.spills[Kind::Returned],
          workload.spills[Kind::WriteFailed], workload.spills[Kind::ReadFailed],
          workload.cancelled_spilled, workload.revoked_spilled, workload.swapped);
  // Or the workload proves nothing.
  CHECK(workload.completed > 100);
  CHECK(workload.spills[Kind::Spilled] > 20);
  CHECK(workload.spills[Kind::Returned] > 5);
  CHECK(workload.cancelled_spilled > 0);
  CHECK(workload.revoked_spilled > 0);
  CHECK((workload.spills[Kind::ReadFailed] > 5) == damages);
  CHECK((workload.spills[Kind::WriteFailed] > 2) == damages);
}

TEST_CASE("spill: a draft model proposes for texts whose blocks were spilled, and changes none") {
  SpillRig spill(40, kv_block_size());
  TightWorkload workload(8, bundled_model_path(), tight_answers_alone(bundled_model_path()),
                         /*lends_swap=*/true, /*swap_blocks=*/2);
  workload.lend_spill(spill);
  for (int i = 0; i < 6'000; ++i) workload.operate();
  workload.finish();
  using Kind = SpillEvent::Kind;
  CAPTURE(workload.spills[Kind::Spilled], workload.spills[Kind::Returned], workload.proposed());
  CHECK(workload.spills[Kind::Spilled] > 5);
  CHECK(workload.spills[Kind::Returned] > 1);
  CHECK(workload.proposed() > 10);
}

TEST_CASE("spill: staging behind a disk that hangs is cleared when the lease ends") {
  SpillRig spill(40, kv_block_size());
  UnitClock clock;
  TightRig rig(TightRig::blocks(9, 3), bundled_model_path(), &clock, {}, /*swap_blocks=*/2);
  clock.drive(rig.clock());
  spill.lend_to(rig.engine());
  const LeaseId lease = rig.grant("a");
  for (int i = 0; i < 6; ++i)
    REQUIRE(rig.submit(rig.request_of(tight_kinds()[0], "a", lease, "r" + std::to_string(i))));
  const auto lend_once = [&](const GrowthRequest&) {
    const bool has_swap = rig.engine().scheduler().tenancies().at(lease).swap.total_blocks() > 0;
    return has_swap ? TightRig::SwapAnswer::Refuse : TightRig::SwapAnswer::Lend;
  };
  for (int i = 0; i < 1000 && spill.is_staging_clear(); ++i) rig.step_without_growth(lend_once);
  REQUIRE_FALSE(spill.is_staging_clear());

  rig.revoke(lease);
  rig.step_without_growth();
  rig.drop(lease);
  CHECK(spill.is_staging_clear());
  spill.finish(rig.engine());
}

}  // namespace leasehold::testing
