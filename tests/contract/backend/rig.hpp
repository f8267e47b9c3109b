/// Every backend with a lease table of its own, and the cases that all of them run.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "kernels/backend.hpp"
#include "kernels/cpu/row_kernels.hpp"
#include "tests/support/fake_table.hpp"
#include "tests/support/leased_memory.hpp"
#include "tests/support/random_blocks.hpp"
#include "tests/support/test_seed.hpp"
#ifdef __x86_64__
#include "tests/support/emulated_tiles.hpp"
#endif

namespace leasehold::testing {

/// The scratch is so small that attention over a few long rows needs several waves.
inline constexpr BackendLimits kLimits{.max_rows = 48,
                                       .max_context = 640,
                                       .n_heads = 8,
                                       .head_dim = 576,
                                       .max_width = 2816,
                                       .n_experts = 16,
                                       .n_experts_used = 16,
                                       .attention_scratch_bytes = 16 * 1024,
                                       .adapter_slots = 4};

/// Backends by thread count: 0 is the reference backend, n > 0 the CPU backend with n threads. From
/// kForcedSimd on: the CPU backend with two threads and that SIMD path, if the CPU supports it.
/// kTwoNodes is the CPU backend with three threads on two nodes of memory. kEmulatedAmx: two
/// threads with the AMX path and tiles in plain C++ (emulated_tiles.hpp), if the CPU has AVX-512
/// with VNNI. kCuda is the CUDA backend for host arrays.
inline constexpr std::uint32_t kTwoNodes = 50;
inline constexpr std::uint32_t kForcedSimd = 100;
inline constexpr std::uint32_t kEmulatedAmx = 190;
inline constexpr std::uint32_t kCuda = 200;
inline const std::vector<std::uint32_t> kEveryBackend = [] {
  std::vector<std::uint32_t> every{0, 1, 2, 3, kTwoNodes};
  for (const SimdPath path : kSimdPaths)
    if (cpu_has(path)) every.push_back(kForcedSimd + static_cast<std::uint32_t>(path));
#ifdef __x86_64__
  if (can_emulate_tiles()) every.push_back(kEmulatedAmx);
#endif
  return every;
}();

/// All of these, and the CUDA backend if the build has a card or the fake driver. Its matmuls of
/// halves have bits of their own; all its other operators have the reference's bits.
inline const std::vector<std::uint32_t> kWithCuda = [] {
  std::vector<std::uint32_t> every = kEveryBackend;
#if LEASEHOLD_TEST_CUDA
  every.push_back(kCuda);
#endif
  return every;
}();

/// The number of gates of such a backend.
constexpr std::uint32_t gates_of(std::uint32_t threads) {
  if (threads == kCuda) return 1;
  if (threads == kTwoNodes) return 3;
  return threads >= kForcedSimd ? 2 : std::max(threads, 1u);
}

/// Lifetime: neither copied nor moved; the backend's gates point into the table.
struct Rig {
  explicit Rig(std::uint32_t threads, GateProbe* probe = nullptr);
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  std::uint64_t units() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : backend->units_run()) sum += count;
    return sum;
  }

  FakeTable table;
  std::unique_ptr<Backend> backend;
};

/// The rows of one step: `counts[s]` rows of sequence s, the last one at position `lengths[s] - 1`.
std::vector<RowRef> rows_of(const std::vector<std::uint32_t>& counts,
                            const std::vector<std::uint32_t>& lengths);

/// Ordinary rows: one sequence per row.
std::vector<RowRef> plain_rows(std::uint32_t n);

/// Runs `launch(backend, context)` in a step of its own and checks that every sequence stayed live.
template <class Launch>
void run_step(Rig& rig, const std::vector<RowRef>& rows, Launch&& launch) {
  std::uint32_t n_sequences = 1;
  for (const RowRef row : rows) n_sequences = std::max(n_sequences, row.sequence + 1);
  const auto gates = rig.table.step(n_sequences);
  const LaunchStatus status =
      launch(*rig.backend, LaunchContext{.gates = gates.get(), .rows = rows, .layer = 1});
  REQUIRE(status.live == gates->all());
}

/// Appends keys and values as they are: without queries, norms and rotation.
LaunchStatus append(Backend& backend, const LaunchContext& context, const KvLayer& layer,
                    std::vector<float> k, std::vector<float> v,
                    std::span<const BlockTableView> block_tables);

/// A matrix of random numbers stored as `type`, with its values as doubles.
struct Matrix {
  Matrix(SeededRandom& random, TensorType type, std::uint32_t n_out, std::uint32_t n_in);

  WeightMatrix view() const;
  double at(std::uint32_t row, std::uint32_t column) const {
    return values[std::size_t{row} * n_in + column];
  }

  TensorType type;
  std::uint32_t n_out;
  std::uint32_t n_in;
  LeasedMemory memory;
  std::vector<float> values;  // [n_out, n_in]
};

/// Keys and values of several sequences, in blocks scattered over several extents each.
class KvFixture {
 public:
  static constexpr std::uint32_t kBlocksPerExtent = 4;

  /// Fills `lengths[s]` positions of sequence s with random numbers in every layer.
  KvFixture(SeededRandom& random, KvLayout layout, const std::vector<std::uint32_t>& lengths);

  std::span<const BlockTableView> block_tables() const { return views_; }
  /// Element d of the key (plane 0) or value (1), the same in a latent layer, addressed
  /// independently of KvLayout.
  float at(std::uint32_t sequence, std::uint32_t layer, std::uint32_t plane, std::uint32_t kv_head,
           std::uint32_t position, std::uint32_t d) const;
  /// Protects all memory of a sequence; touching it kills the test.
  void forbid(std::uint32_t sequence);
  std::vector<std::byte> bytes_of(std::uint32_t sequence) const;

  const KvLayout layout;
  const KvLayer shape;  ///< Of every layer, except for its offset.

 private:
  struct BlockLocation {
    std::uint32_t extent;
    std::size_t offset_bytes;
  };
  struct Sequence {
    std::vector<LeasedMemory> extents;
    std::vector<BlockLocation> block_locations;  // indexed by block
    std::vector<Leased<std::byte>> table;
  };

  std::vector<Sequence> sequences_;
  std::vector<BlockTableView> views_;
};

}  // namespace leasehold::testing
