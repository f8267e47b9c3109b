/// The backend that is easy to verify: plain loops in the written order, one thread.
///
/// A unit is a row, a vector or head of a row, a weight row or group, a partition of one row and
/// head, or 64 KiB of a copy. Every other backend is compared with the bits of this one.
#pragma once

#include "ipc/segment/thread_gate.hpp"
#include "kernels/expert_groups.hpp"
#include "kernels/host_backend.hpp"
#include "kernels/rounded_rows.hpp"

namespace leasehold {

class ReferenceBackend final : public HostBackend {
 public:
  /// The gate's worker segment, table and stop flags outlive the backend.
  ReferenceBackend(const BackendLimits& limits, const ThreadGate& gate);

  std::string_view name() const override { return "reference"; }
  LaunchStatus embedding(const LaunchContext& context, const EmbeddingArgs& args) override;
  LaunchStatus rms_norm(const LaunchContext& context, const RmsNormArgs& args) override;
  LaunchStatus matmul(const LaunchContext& context, const MatmulArgs& args) override;
  LaunchStatus low_rank(const LaunchContext& context, const LowRankArgs& args) override;
  /// One launch for each norm and rotation, and one for the append.
  LaunchStatus prepare_heads(const LaunchContext& context, const HeadsArgs& args) override;
  LaunchStatus attention(const LaunchContext& context, const AttentionArgs& args) override;
  LaunchStatus convolution(const LaunchContext& context, const ConvolutionArgs& args) override;
  LaunchStatus recurrence(const LaunchContext& context, const RecurrenceArgs& args) override;
  LaunchStatus swiglu(const LaunchContext& context, const SwiGluArgs& args) override;
  LaunchStatus softcap(const LaunchContext& context, const SoftcapArgs& args) override;
  LaunchStatus expert_routing(const LaunchContext& context, const ExpertRoutingArgs& args) override;
  LaunchStatus expert_matmul(const LaunchContext& context, const ExpertMatmulArgs& args) override;
  LaunchStatus weighted_sum(const LaunchContext& context, const WeightedSumArgs& args) override;
  LaunchStatus copy_in(const LaunchContext& context, const CopyInArgs& args) override;
  LaunchStatus copy_blocks(const LaunchContext& context, const CopyBlocksArgs& args) override;
  void clear_workspace() override;
  std::vector<std::uint64_t> units_run() const override { return {gate_.units_run()}; }

 private:
  /// Runs `unit(permit, i)` for i in [0, count) while any sequence is live.
  template <class Unit>
  LaunchStatus each_unit(const LaunchContext& context, UnitLabel label, std::size_t count,
                         Unit&& unit) {
    SequenceMask live = context.gates->all();
    for (std::size_t i = 0; i < count && live != 0; ++i)
      live &=
          gate_.run(*context.gates, label, [&](const LaunchPermit& permit) { unit(permit, i); });
    return {live};
  }
  LaunchStatus append(const LaunchContext& context, const HeadsArgs& args);
  LaunchStatus matmul_int8(const LaunchContext& context, const MatmulArgs& args);
  LaunchStatus expert_matmul_int8(const LaunchContext& context, const ExpertMatmulArgs& args);
  struct PartitionPart;
  void score_partition(const float* q, const AttentionArgs& args, const PartitionPart& part,
                       float* partial);

  BackendLimits limits_;
  ThreadGate gate_;
  std::vector<float> row_;       // [max_width]: one dequantised row, key or value
  RoundedRows rounded_;          // one row
  std::vector<float> partials_;  // [max partitions, partial_floats(head_dim)] of one row and head
  ExpertGroups groups_;
};

}  // namespace leasehold
