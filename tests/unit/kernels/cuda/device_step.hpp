/// A step as the device sees it, and the reference backend for comparison, for tests of CUDA
/// kernels.
#pragma once

#include <memory>
#include <vector>

#include "kernels/cuda/device/kv_addressing.hpp"
#include "kernels/cuda/device/tiles.hpp"
#include "kernels/cuda/plan/plan_context.hpp"
#include "kernels/reference/reference_backend.hpp"
#include "tests/contract/backend/rig.hpp"
#include "tests/support/simt/runner.hpp"

namespace leasehold::testing {

/// Fills memory that no kernel may touch: a NaN that no arithmetic produces.
inline constexpr std::uint32_t kPoisonBits = 0xffa5a5a5;
std::vector<float> poisoned(std::size_t n);
bool is_poison(float value);

/// Lifetime: neither copied nor moved; launches point into it.
class DeviceStep {
 public:
  static constexpr std::uint16_t kLayer = 1;

  /// Launches are planned for `spare` rows more than the step has.
  explicit DeviceStep(std::vector<RowRef> rows, std::uint32_t n_sequences = 1,
                      std::uint32_t spare = 0);
  DeviceStep(const DeviceStep&) = delete;
  DeviceStep& operator=(const DeviceStep&) = delete;

  std::size_t n_rows() const { return rows_.size(); }
  const std::vector<RowRef>& rows() const { return rows_; }
  bool is_dead(std::size_t row) const { return (mirror.live >> rows_[row].sequence & 1) == 0; }
  cuda::PlanContext plan() const;

  /// Runs blocks, warps and lanes in an order made from the seed. The launch must succeed.
  void run(const cuda::KernelLaunch& launch, std::uint64_t order_seed = 0) const;
  void run(const std::vector<cuda::KernelLaunch>& launches, std::uint64_t order_seed = 0) const;

  /// The same step on the reference backend, with every sequence live.
  ReferenceBackend& reference() { return *reference_; }
  LaunchContext context() const { return {.gates = gates_.get(), .rows = rows_, .layer = kLayer}; }

  device::GateMirror mirror{};
  device::DeviceStep step{};

 private:
  std::vector<RowRef> rows_;
  std::uint32_t spare_;
  FakeTable table_;
  std::unique_ptr<GateSet> gates_;
  std::unique_ptr<ReferenceBackend> reference_;
};

/// Runs the hook before each block, until the end of the test.
struct BlockHookScope {
  explicit BlockHookScope(simt::BlockHook hook) { simt::set_block_hook(std::move(hook)); }
  BlockHookScope(const BlockHookScope&) = delete;
  BlockHookScope& operator=(const BlockHookScope&) = delete;
  ~BlockHookScope() { simt::set_block_hook({}); }
};

/// Orders of blocks that tests of several orders use.
inline constexpr std::uint64_t kOrders[] = {0, simt::kDescendingOrder, 5};

inline std::uint64_t block_count(const cuda::KernelLaunch& launch) {
  return std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
}

/// A fixture's block tables in device memory.
struct DeviceTables {
  explicit DeviceTables(const KvFixture& kv);
  device::BlockTables view() const { return {addresses.data(), first.data()}; }

  std::vector<std::uint64_t> addresses;
  std::vector<std::uint32_t> first;
};

/// Memory for rows in tiles, and the decoding of their content.
struct TileMemory {
  TileMemory(std::uint32_t n_rows, std::uint32_t n_in);
  device::TileRows view();
  /// Element i of a row, divided by the row's power of two.
  float at(std::uint32_t row, std::uint32_t i) const;

  std::uint32_t n_in;
  std::vector<std::uint16_t> halves;
  std::vector<float> scales;
};

}  // namespace leasehold::testing
