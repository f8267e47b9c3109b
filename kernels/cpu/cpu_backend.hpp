/// Runs tiles on a thread pool with the widest SIMD path of the CPU and the bits of the reference
/// backend.
///
/// A unit is a tile of at most about 15 µs (kernels/cpu/tiling.hpp). create() allocates all
/// scratch. Weights are dequantised a few rows at a time; no fp32 copy of a matrix exists.
#pragma once

#include <memory>
#include <string>

#include "common/result.hpp"
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
  /// flags outlive the backend. Errors: SystemError if the CPU lacks the path or the system has no
  /// more threads.
  static Result<std::unique_ptr<CpuBackend>> create(const BackendLimits& limits,
                                                    std::vector<ThreadGate> gates,
                                                    SimdPath path = best_simd_path());

  /// For example "cpu-avx2".
  std::string_view name() const override { return name_; }
  LaunchStatus embedding(const LaunchContext& context, const EmbeddingArgs& args) override;
  LaunchStatus rms_norm(const LaunchContext& context, const RmsNormArgs& args) override;
  LaunchStatus matmul(const LaunchContext& context, const MatmulArgs& args) override;
  LaunchStatus project(const LaunchContext& context, const ProjectionArgs& args) override;
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

 private:
  CpuBackend(const BackendLimits& limits, std::vector<ThreadGate> gates, SimdPath path);

  template <class Row>
  LaunchStatus each_row(const LaunchContext& context, UnitLabel label, std::uint64_t macs_per_row,
                        Row&& row);
  /// The tiles of a matmul with `n_out` rows of the matrix in f32 arithmetic.
  MatmulTiles dot_tiles(const WeightMatrix& weight, std::uint32_t n_out,
                        std::uint32_t n_batch) const;
  /// At most kDotOutputs rows of a matrix without inputs, widened if dots do not multiply their
  /// type. Valid while the permit is, and until the thread opens other rows.
  DotTile open_rows(const LaunchPermit& permit, const WeightMatrix& weight, Span32 rows,
                    std::uint32_t thread);

  /// Scratch of a thread's attention tile, at the start of a cache line: a load that crosses lines
  /// takes twice as long.
  float* tile_scratch(std::uint32_t thread);

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
  template <class PartOf>
  LaunchStatus round_rows(const LaunchContext& context, LaunchSite site, const RoundingPlan& plan,
                          PartOf&& part_of);
  LaunchStatus round_inputs(const LaunchContext& context, const ProjectionArgs& args,
                            std::uint32_t n_batch);
  LaunchStatus project_int8(const LaunchContext& context, const ProjectionArgs& args);
  LaunchStatus multiply_int8(const LaunchContext& context, std::span<const MatmulArgs> matmuls,
                             std::uint32_t n_batch);
  void multiply_tile(const LaunchPermit& permit, const MatmulArgs& args, Span32 groups,
                     Span32 batch);
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
  LaunchStatus merge_wave(const LaunchContext& context, const AttentionArgs& args,
                          const AttentionWave& wave);

  BackendLimits limits_;
  const RowKernels& kernels_;
  std::string name_;
  Launcher launcher_;
  std::size_t widened_stride_;
  std::vector<float> widened_rows_;                 // [threads, kDotOutputs, widened_stride_]
  RoundedRows rounded_;                             // of the running matmul
  std::uint32_t used_rounded_ = 0;                  // rows written since the last clear_workspace
  std::size_t max_partials_;                        // partials of one wave
  ZeroedArray<float> partials_;                     // [max_partials_, partial_floats(head_dim)]
  std::size_t used_partials_ = 0;                   // written since the last clear_workspace
  std::vector<std::uint32_t> first_partial_;        // [max_rows + 1], of the running wave
  std::vector<AttentionTilePlan> attention_tiles_;  // of the running wave; at most max_partials_
  std::size_t tile_scratch_stride_;
  ZeroedArray<float> tile_scratch_;  // [1 + threads, tile_scratch_stride_], see tile_scratch()
  std::vector<std::uint32_t> first_tile_;  // [n_experts + 1], of the running expert matmul
  ExpertGroups groups_;                    // of the running expert matmul
};

}  // namespace leasehold
