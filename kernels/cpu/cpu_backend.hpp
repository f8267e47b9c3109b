/// Runs tiles on a thread pool with the fastest SIMD path of the CPU and the bits of the reference
/// backend.
///
/// The backend chooses among operators that own their scratch; those that work row by row own none.
/// A unit is a tile of at most about 15 µs (kernels/cpu/tiling.hpp). create() allocates all
/// scratch.
#pragma once

#include <memory>
#include <string>

#include "common/result.hpp"
#include "kernels/cpu/cpu_attention.hpp"
#include "kernels/cpu/float_matmuls.hpp"
#include "kernels/cpu/int8_matmuls.hpp"
#include "kernels/cpu/low_rank.hpp"
#include "kernels/host_backend.hpp"
#include "kernels/sequence_rows.hpp"

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
  LaunchStatus prepare_heads(const LaunchContext& context, const HeadsArgs& args) override;
  LaunchStatus convolution(const LaunchContext& context, const ConvolutionArgs& args) override;
  LaunchStatus recurrence(const LaunchContext& context, const RecurrenceArgs& args) override;
  LaunchStatus swiglu(const LaunchContext& context, const SwiGluArgs& args) override;
  LaunchStatus softcap(const LaunchContext& context, const SoftcapArgs& args) override;
  LaunchStatus expert_routing(const LaunchContext& context, const ExpertRoutingArgs& args) override;
  LaunchStatus weighted_sum(const LaunchContext& context, const WeightedSumArgs& args) override;
  LaunchStatus attention(const LaunchContext& context, const AttentionArgs& args) override {
    return attention_.run(context, args);
  }
  LaunchStatus matmul(const LaunchContext& context, const MatmulArgs& args) override;
  LaunchStatus low_rank(const LaunchContext& context, const LowRankArgs& args) override {
    return low_rank_.run(context, args);
  }
  LaunchStatus project(const LaunchContext& context, const ProjectionArgs& args) override;
  LaunchStatus feed_forward(const LaunchContext& context, const FeedForwardArgs& args) override;
  LaunchStatus expert_matmul(const LaunchContext& context, const ExpertMatmulArgs& args) override;
  LaunchStatus copy_in(const LaunchContext& context, const CopyInArgs& args) override;
  LaunchStatus copy_blocks(const LaunchContext& context, const CopyBlocksArgs& args) override;
  void clear_workspace() override;
  std::vector<std::uint64_t> units_run() const override { return cpu_.launcher.units_run(); }
  /// Launches since creation. Tests count the launches of a layer.
  std::uint64_t launches_run() const { return cpu_.launcher.launches_run(); }

 private:
  CpuBackend(const BackendLimits& limits, std::vector<ThreadGate> gates, const RowKernels& kernels,
             std::string name, const PoolNodes& nodes)
      : name_(std::move(name)), cpu_{limits, kernels, Launcher(std::move(gates), nodes)} {}
  void norm_values(const HeadsArgs& args, std::size_t r) const;
  void append(const LaunchPermit& permit, const LaunchContext& context, const HeadsArgs& args,
              std::size_t r) const;
  /// Rows of a sequence that a unit of `advance` takes.
  std::uint32_t rows_at_once(const RecurrenceArgs& args) const;
  /// Advances the state over these rows of each sequence, counted from the sequence's first one.
  LaunchStatus advance(const LaunchContext& context, const RecurrenceArgs& args,
                       const SequenceList& sequences, Span32 rows);

  std::string name_;
  CpuResources cpu_;
  CpuAttention attention_{cpu_};
  FloatMatmuls float_matmuls_{cpu_};
  Int8Matmuls int8_matmuls_{cpu_};
  LowRankProducts low_rank_{cpu_};
  ExpertTiles experts_{cpu_.limits};  // of the running expert matmul
};

}  // namespace leasehold
