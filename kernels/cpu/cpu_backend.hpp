/// Runs tiles on a thread pool with the fastest SIMD path of the CPU and the bits of the reference
/// backend.
///
/// A unit is a tile of at most about 15 µs (kernels/cpu/tiling.hpp). create() allocates all
/// scratch. Weights are dequantised a few rows at a time; no fp32 copy of a matrix exists.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "common/result.hpp"
#include "kernels/cpu/group_tiles.hpp"
#include "kernels/cpu/launcher.hpp"
#include "kernels/cpu/row_kernels.hpp"
#include "kernels/cpu/tiling.hpp"
#include "kernels/expert_groups.hpp"
#include "kernels/host_backend.hpp"
#include "kernels/rounded_rows.hpp"

namespace leasehold {

class CpuBackend final : public HostBackend {
 public:
  /// One thread per gate; the first gate belongs to the caller. The worker segment, table and stop
  /// flags outlive the backend. Scratch lies where the calling thread runs. Errors: BadRequest if
  /// the CPU lacks the path; SystemError if the path fails its self-check, or the system has no
  /// more threads.
  static Result<std::unique_ptr<CpuBackend>> create(const BackendLimits& limits,
                                                    std::vector<ThreadGate> gates,
                                                    SimdPath path = best_simd_path(),
                                                    const PoolNodes& nodes = {});
  /// Creates a backend with a path's kernels, or with a test's, which outlive the backend. Errors:
  /// SystemError if the system has no more threads.
  static Result<std::unique_ptr<CpuBackend>> create(const BackendLimits& limits,
                                                    std::vector<ThreadGate> gates,
                                                    const RowKernels& kernels, std::string name,
                                                    const PoolNodes& nodes = {});

  /// For example "cpu-avx2".
  std::string_view name() const override { return name_; }
  LaunchStatus embedding(const LaunchContext& context, const EmbeddingArgs& args) override;
  LaunchStatus rms_norm(const LaunchContext& context, const RmsNormArgs& args) override;
  LaunchStatus matmul(const LaunchContext& context, const MatmulArgs& args) override;
  LaunchStatus project(const LaunchContext& context, const ProjectionArgs& args) override;
  LaunchStatus feed_forward(const LaunchContext& context, const FeedForwardArgs& args) override;
  LaunchStatus prepare_heads(const LaunchContext& context, const HeadsArgs& args) override;
  LaunchStatus rope(const LaunchContext& context, const RopeArgs& args) override;
  LaunchStatus kv_append(const LaunchContext& context, const KvAppendArgs& args) override;
  LaunchStatus attention(const LaunchContext& context, const AttentionArgs& args) override;
  LaunchStatus swiglu(const LaunchContext& context, const SwiGluArgs& args) override;
  LaunchStatus expert_routing(const LaunchContext& context, const ExpertRoutingArgs& args) override;
  LaunchStatus expert_matmul(const LaunchContext& context, const ExpertMatmulArgs& args) override;
  LaunchStatus weighted_sum(const LaunchContext& context, const WeightedSumArgs& args) override;
  LaunchStatus copy_in(const LaunchContext& context, const CopyInArgs& args) override;
  LaunchStatus copy_blocks(const LaunchContext& context, const CopyBlocksArgs& args) override;
  void clear_workspace() override;
  std::vector<std::uint64_t> units_run() const override { return launcher_.units_run(); }
  /// Launches since creation. Tests count the launches of a layer.
  std::uint64_t launches_run() const { return launcher_.launches_run(); }

 private:
  CpuBackend(const BackendLimits& limits, std::vector<ThreadGate> gates, const RowKernels& kernels,
             std::string name, const PoolNodes& nodes);

  template <class Row>
  LaunchStatus each_row(const LaunchContext& context, UnitLabel label, std::uint64_t macs_per_row,
                        Row&& row);
  /// The tiles of a matmul with `n_out` rows of the matrix in f32 arithmetic.
  MatmulTiles dot_tiles(const WeightMatrix& weight, std::uint32_t n_out,
                        std::uint32_t n_batch) const;
  /// Returns a tile of matrix rows (at most kDotOutputs) without inputs. Rows of types other than
  /// F32, F16 and BF16 are widened to float. The tile requests the rows from `next` on from memory.
  /// Valid while the permit is, and until the thread opens other rows.
  DotTile open_rows(const LaunchPermit& permit, const WeightMatrix& weight, Span32 rows,
                    std::uint32_t next, std::uint32_t thread);
  std::uint32_t row_after(const MatmulTiles& tiles, std::uint32_t tile, std::uint32_t thread) const;

  /// Scratch of a thread's attention tile, at the start of a cache line: a load that crosses lines
  /// takes twice as long.
  float* tile_scratch(std::uint32_t thread);

  /// Most rows that a thread rounds for itself.
  static constexpr std::uint32_t kOwnRows = 8;

  struct AttentionWave;
  /// Queries [first_query, first_query + n_queries) of a kv head against a partition. Query i is
  /// head i mod (heads per kv head) of row first_row + i / (heads per kv head).
  struct AttentionTilePlan {
    std::uint32_t first_row;
    std::uint32_t first_query;
    std::uint32_t n_queries;
    std::uint32_t kv_head;
    std::uint32_t partition;
  };
  AttentionWave next_wave(const LaunchContext& context, const AttentionArgs& args,
                          std::uint32_t first_row);
  struct RoundingPlan;
  struct InputRows;
  struct TileInputs;
  const float* input_part(const LaunchPermit& permit, std::uint32_t thread,
                          const RoundingPlan& plan, std::uint32_t i, Span32 columns);
  void round_parts(const LaunchPermit& permit, std::uint32_t thread, const RoundingPlan& plan,
                   Span32 parts, InputRows to_rows);
  bool should_each_thread_round(const RoundingPlan& plan) const;
  template <class Tile>
  LaunchStatus run_rounded(const LaunchContext& context, const RoundingPlan& plan,
                           const TilePasses& tiles, Tile&& tile);
  const Int8Units& int8_units(std::uint32_t n_batch) const;
  /// A unit multiplies a tile of each of `matrices` matrices of the same shape.
  GroupTiles group_tiles(const WeightMatrix& weight, std::uint32_t n_groups, std::uint32_t n_batch,
                         std::uint32_t matrices = 1) const;
  LaunchStatus project_int8(const LaunchContext& context, const ProjectionArgs& args);
  void multiply_groups(const LaunchPermit& permit, const WeightMatrix& weight, Span32 groups,
                       std::span<const RoundedRow> x, GroupDots* dots);
  void store_dots(const MatmulArgs& args, const LaunchPermit& permit, std::uint32_t group,
                  Span32 batch, const GroupDots& dots);
  void multiply_tile(const LaunchPermit& permit, const MatmulArgs& args, GroupSpan groups,
                     Span32 batch, InputRows rows);
  void multiply_gated(const LaunchPermit& permit, const FeedForwardArgs& args, GroupSpan groups,
                      Span32 batch, InputRows rows);
  LaunchStatus gate_and_up(const LaunchContext& context, const FeedForwardArgs& args,
                           const RoundingPlan& plan);
  void gate_block(const FeedForwardArgs& args, GroupSpan groups, Span32 batch);
  LaunchStatus expert_matmul_int8(const LaunchContext& context, const ExpertMatmulArgs& args,
                                  const ExpertItems& batch);
  /// The expert of a tile, by first_tile_.
  std::uint32_t expert_of_tile(std::uint32_t n_experts, std::uint32_t tile) const;
  void add_tiles(const LaunchContext& context, const AttentionArgs& args, std::uint32_t first,
                 std::uint32_t end, std::uint32_t partition);
  void plan_tiles(const LaunchContext& context, const AttentionArgs& args,
                  const AttentionWave& wave);
  void place_queries(const LaunchContext& context, const AttentionArgs& args,
                     const AttentionWave& wave, const AttentionTilePlan& plan, AttentionTile& tile);
  LaunchStatus score_wave(const LaunchContext& context, const AttentionArgs& args,
                          const AttentionWave& wave);
  void merge_head(const LaunchContext& context, const AttentionArgs& args,
                  const AttentionWave& wave, std::uint32_t r, std::uint32_t head);
  void merge_complete(const LaunchContext& context, const AttentionArgs& args,
                      const AttentionWave& wave, const AttentionTilePlan& plan);
  LaunchStatus merge_wave(const LaunchContext& context, const AttentionArgs& args,
                          const AttentionWave& wave);
  void append_row(const LaunchPermit& permit, const LaunchContext& context,
                  const KvAppendArgs& args, std::size_t r);

  BackendLimits limits_;
  const RowKernels& kernels_;
  std::string name_;
  Launcher launcher_;
  std::size_t widened_stride_;
  /// [threads, kDotOutputs, widened_stride_]: weight rows, or a row of x before it is rounded
  std::vector<float> widened_rows_;
  RoundedRows rounded_;             // of the running matmul
  RoundedRows own_rounded_;         // of the running matmul, [threads, kOwnRows]
  std::uint32_t used_rounded_ = 0;  // rows written since the last clear_workspace
  /// Per tile of the running feed-forward: its halves (gate and up) that no unit has computed yet.
  std::vector<std::atomic<std::uint32_t>> products_left_;
  std::size_t max_partials_;                  // the most partials of a wave
  ZeroedArray<float> partials_;               // [max_partials_, partial_floats(head_dim)]
  std::size_t used_partials_ = 0;             // partials written since the last clear_workspace
  std::vector<std::uint32_t> first_partial_;  // [max_rows + 1], of the running wave
  /// [max_rows, n_heads]: partitions of the running wave that no unit has computed yet
  std::vector<std::atomic<std::uint32_t>> partitions_left_;
  std::vector<AttentionTilePlan> attention_tiles_;  // of the running wave; at most max_partials_
  std::size_t tile_scratch_stride_;
  ZeroedArray<float> tile_scratch_;  // [1 + threads, tile_scratch_stride_], see tile_scratch()
  std::vector<std::uint32_t> first_tile_;  // [n_experts + 1], of the running expert matmul
  ExpertGroups groups_;                    // items of the running expert matmul
};

}  // namespace leasehold
