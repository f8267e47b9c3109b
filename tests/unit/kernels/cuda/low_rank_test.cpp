#include <catch2/catch.hpp>

#include "kernels/cuda/plan/low_rank_plan.hpp"
#include "tests/unit/kernels/cuda/device_step.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint32_t kSlots = 2;
constexpr std::uint32_t kIn = 70;
constexpr std::uint32_t kOut[kSlots] = {150, 33};
constexpr std::uint32_t kMaxRank = 12;

/// One adapter, in the memory of the host and in that of the card.
struct Adapter {
  std::vector<Matrix> memory;
  std::vector<LowRankMatrix> slots;

  Adapter(SeededRandom& random, TensorType type, std::uint32_t rank) {
    memory.reserve(2 * kSlots);
    for (const std::uint32_t n_out : kOut) {
      memory.emplace_back(random, type, rank, kIn);
      memory.emplace_back(random, type, rank, n_out);
      slots.push_back({.type = type,
                       .rank = rank,
                       .scale = 1.5F,
                       .a = memory[memory.size() - 2].memory.at(),
                       .b = memory.back().memory.at()});
    }
  }
  void add_to(std::vector<device::DeviceLowRank>& table) const {
    for (std::uint32_t slot = 0; slot < kSlots; ++slot)
      table.push_back({.a = reinterpret_cast<std::uint64_t>(memory[2 * slot].memory.bytes()),
                       .b = reinterpret_cast<std::uint64_t>(memory[2 * slot + 1].memory.bytes()),
                       .rank = slots[slot].rank,
                       .scale = slots[slot].scale,
                       .type = slots[slot].type});
  }
};

/// The outputs of two products, [rows, kOut[p]] each, after `spare` rows that no kernel may touch.
struct Outputs {
  std::vector<float> of[kSlots];
  std::vector<LowRankProduct> products() {
    std::vector<LowRankProduct> all;
    for (std::uint32_t p = 0; p < kSlots; ++p)
      all.push_back({LaunchSite::QueryProjection, p, of[p].data(), kOut[p]});
    return all;
  }
};

}  // namespace

TEST_CASE("cuda: products of adapters have the reference's bits, with rows in turn or together") {
  const bool shares_rows = GENERATE(false, true);
  const bool kills_one = GENERATE(false, true);
  SeededRandom random(test_seed());
  CAPTURE(test_seed(), shares_rows, kills_one);
  // Sequences 0 and 2 have an adapter each, and 1 has none. A run of rows ends within a block.
  DeviceStep step(rows_of({11, 2, 3}, {20, 20, 20}), 3, 1);
  const Adapter first(random, TensorType::F16, 12);
  const Adapter second(random, TensorType::F32, 5);
  std::vector<device::DeviceLowRank> table;
  first.add_to(table);
  table.resize(2 * kSlots);
  second.add_to(table);
  const auto x = random_floats(random, step.n_rows() * kIn);
  Outputs before;
  for (std::uint32_t p = 0; p < kSlots; ++p)
    before.of[p] = random_floats(random, (step.n_rows() + 1) * kOut[p]);
  std::vector<float> h((step.n_rows() + 1) * kSlots * kMaxRank);
  const std::vector<const LowRankMatrix*> adapters{first.slots.data(), nullptr,
                                                   second.slots.data()};
  LowRankArgs args{.adapters = adapters,
                   .x = x.data(),
                   .n_in = kIn,
                   .products = {},
                   .max_rank = kMaxRank,
                   .h = h.data()};
  Outputs expected = before;
  const auto expected_products = expected.products();
  args.products = expected_products;
  step.reference().low_rank(step.context(), args);

  if (kills_one) step.mirror.live &= ~SequenceMask{1};
  Outputs out = before;
  const auto products = out.products();
  args.products = products;
  step.run(cuda::plan_low_rank(step.plan(), args, {table.data(), kSlots}, shares_rows), 3);
  for (std::uint32_t p = 0; p < kSlots; ++p)
    for (std::size_t at = 0; at < out.of[p].size(); ++at) {
      const std::size_t row = at / kOut[p];
      const bool is_untouched = row == step.n_rows() || step.is_dead(row);
      CAPTURE(p, row, at);
      REQUIRE(out.of[p][at] == (is_untouched ? before : expected).of[p][at]);
    }
  REQUIRE(first_difference(expected.of[0], before.of[0]) != -1);
}

}  // namespace leasehold::testing
