/// A CUDA backend for the suite with host arrays: every operator is a step of its own that copies
/// its arrays to the card and back.
///
/// The real backend receives the same calls as from an engine: a step begins, the arrays are in its
/// scratch, the step finishes. Input arrays are copied back too, so a write to one is detected.
///
/// Lifetime: the gate's worker segment, table and stop flags outlive it. Threads: one. Errors:
/// exceptions at creation; later those of the backend.
#pragma once

#include <memory>
#include <vector>

#include "kernels/backend.hpp"
#include "kernels/cuda/cuda_backend.hpp"
#include "tests/support/test_card.hpp"

namespace leasehold::testing {

class DeviceArrays final : public Backend {
 public:
  DeviceArrays(BackendLimits limits, const ThreadGate& gate, cuda::CudaOptions options);

  std::string_view name() const override { return backend_->name(); }
  std::byte* allocate_scratch(std::size_t size_bytes) override;
  void clear_scratch(std::byte* at, std::size_t size_bytes) override;
  std::span<const float> fetch(const float* at, std::size_t count) override;
  std::optional<Error> fault() const override { return backend_->fault(); }

  LaunchStatus embedding(const LaunchContext& context, const EmbeddingArgs& args) override;
  LaunchStatus rms_norm(const LaunchContext& context, const RmsNormArgs& args) override;
  LaunchStatus matmul(const LaunchContext& context, const MatmulArgs& args) override;
  LaunchStatus low_rank(const LaunchContext& context, const LowRankArgs& args) override;
  LaunchStatus attention(const LaunchContext& context, const AttentionArgs& args) override;
  LaunchStatus swiglu(const LaunchContext& context, const SwiGluArgs& args) override;
  LaunchStatus convolution(const LaunchContext& context, const ConvolutionArgs& args) override;
  LaunchStatus recurrence(const LaunchContext& context, const RecurrenceArgs& args) override;
  LaunchStatus softcap(const LaunchContext& context, const SoftcapArgs& args) override;
  LaunchStatus expert_routing(const LaunchContext& context, const ExpertRoutingArgs& args) override;
  LaunchStatus expert_matmul(const LaunchContext& context, const ExpertMatmulArgs& args) override;
  LaunchStatus weighted_sum(const LaunchContext& context, const WeightedSumArgs& args) override;
  LaunchStatus project(const LaunchContext& context, const ProjectionArgs& args) override;
  LaunchStatus feed_forward(const LaunchContext& context, const FeedForwardArgs& args) override;
  LaunchStatus prepare_heads(const LaunchContext& context, const HeadsArgs& args) override;
  LaunchStatus prepare_and_attend(const LaunchContext& context, const HeadsArgs& heads,
                                  const AttentionArgs& attention) override;
  LaunchStatus copy_in(const LaunchContext& context, const CopyInArgs& args) override;
  LaunchStatus copy_blocks(const LaunchContext& context, const CopyBlocksArgs& args) override;
  void write(const LaunchPermit& permit, std::span<const LeasedPiece> pieces) override;
  void clear_workspace() override { backend_->clear_workspace(); }
  /// Counts units of operators, without those of begin_step.
  std::vector<std::uint64_t> units_run() const override;

 private:
  struct Array {
    std::byte* host;
    std::byte* device;
    std::size_t size_bytes;
  };

  /// The array's address on the card, with the host's content; equal arrays have equal addresses.
  template <class T>
  T* on_device(T* host, std::size_t count);
  std::byte* upload(const std::byte* host, std::size_t size_bytes);
  void download_all();
  void reset_arena();
  void wait() const;
  /// The same arguments, with the addresses of their arrays on the card.
  MatmulArgs on_device(const LaunchContext& context, const MatmulArgs& args);
  RmsNormArgs on_device(const LaunchContext& context, const RmsNormArgs& args);
  SwiGluArgs on_device(const LaunchContext& context, const SwiGluArgs& args);
  HeadsArgs on_device(const LaunchContext& context, const HeadsArgs& args);
  AttentionArgs on_device(const LaunchContext& context, const AttentionArgs& args);
  static StepInput step_of(const LaunchContext& context, const HeadsArgs& args);
  /// Runs the operator in a step of these arguments. `launch` is called after begin_step.
  template <class Launch>
  LaunchStatus in_step(const LaunchContext& context, StepInput parts, Launch&& launch);
  void reach(const WeightMatrix& matrix);
  void reach(const LowRankArgs& args);
  void reach(std::span<const BlockTableView> tables, const KvLayer& layer);
  /// Reaches the first `size_bytes` of every block.
  void reach(std::span<const StateTableView> tables, std::size_t size_bytes);

  std::unique_ptr<cuda::CudaBackend> backend_;
  std::byte* arena_;
  std::size_t arena_used_ = 0;
  std::vector<Array> arrays_;
  std::unique_ptr<DeviceRegistration> reach_ = std::make_unique<DeviceRegistration>();
  cuda::Stream stream_;
  std::uint64_t begin_step_units_ = 0;
};

}  // namespace leasehold::testing
