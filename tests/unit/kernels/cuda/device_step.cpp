#include "tests/unit/kernels/cuda/device_step.hpp"

#include <bit>
#include <catch2/catch.hpp>

#include "kernels/numerics/f16.hpp"

namespace leasehold::testing {
namespace {

constexpr BackendLimits kReferenceLimits{.max_rows = 512,
                                         .max_context = 16384,
                                         .n_heads = 64,
                                         .head_dim = 576,
                                         .max_width = 16384,
                                         .n_experts = 256};

}  // namespace

std::vector<float> poisoned(std::size_t n) {
  return std::vector<float>(n, std::bit_cast<float>(kPoisonBits));
}

bool is_poison(float value) {
  return std::bit_cast<std::uint32_t>(value) == kPoisonBits;
}

DeviceStep::DeviceStep(std::vector<RowRef> rows, std::uint32_t n_sequences, std::uint32_t spare)
    : rows_(std::move(rows)),
      spare_(spare),
      gates_(table_.step(n_sequences)),
      reference_(std::make_unique<ReferenceBackend>(kReferenceLimits, table_.gate())) {
  mirror.live = gates_->all();
  step.n_rows = static_cast<std::uint32_t>(rows_.size());
  step.n_sequences = n_sequences;
  for (const RowRef row : rows_) step.longest = std::max(step.longest, row.position + 1);
}

cuda::PlanContext DeviceStep::plan() const {
  return {.gate = {.mirror = &mirror, .step = &step, .rows = rows_.data()},
          .n_rows = step.n_rows + spare_,
          .layer = kLayer};
}

void DeviceStep::run(const cuda::KernelLaunch& launch, std::uint64_t order_seed) const {
  simt::set_order_seed(order_seed);
  const auto result = simt::run(launch);
  INFO((result ? "" : result.error().detail));
  REQUIRE(result);
}

void DeviceStep::run(const std::vector<cuda::KernelLaunch>& launches,
                     std::uint64_t order_seed) const {
  for (const cuda::KernelLaunch& launch : launches) run(launch, order_seed);
}

DeviceTables::DeviceTables(const KvFixture& kv) {
  for (const BlockTableView& table : kv.block_tables()) {
    first.push_back(static_cast<std::uint32_t>(addresses.size()));
    for (const Leased<std::byte> block : table.blocks)
      addresses.push_back(reinterpret_cast<std::uint64_t>(address_of(block)));
  }
}

TileMemory::TileMemory(std::uint32_t n_rows, std::uint32_t n_in_)
    : n_in(n_in_),
      halves(device::tile_halves(n_rows, n_in) + 64, 0xffff),
      scales(poisoned(n_rows)) {}

device::TileRows TileMemory::view() {
  return {.halves = halves.data(), .scales = scales.data(), .n_in = n_in};
}

float TileMemory::at(std::uint32_t row, std::uint32_t i) const {
  // Independent of the kernel: kernels/cuda/device/tiles.hpp says element 8t + 2c + b of group j.
  const std::uint32_t j = i / 32;
  const std::uint32_t t = i % 32 / 8;
  const std::uint32_t c = i % 8 / 2;
  const std::uint32_t core = 4 * j + c;
  const std::size_t cores = device::padded_columns(n_in) / 8;
  const std::size_t at = ((row / 8 * cores + core) * 8 + row % 8) * 8 + 2 * t + i % 2;
  return f32_from_f16(halves[at]) * scales[row];
}

}  // namespace leasehold::testing
