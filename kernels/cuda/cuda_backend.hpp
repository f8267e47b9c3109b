/// The operators on a card, with the contract of Backend.
///
/// An operator is planned (plan/: pure functions that choose kernels and parameters) and launched
/// (StepRunner). Attention, matmuls, copies and the search of logits are objects that own their
/// memory; operators that work row by row own none.
///
/// Lifetime: the context and the gate's worker segment, table and stop flags outlive the backend.
/// Threads: the engine's; any thread may call `when_settled`. Errors: create() reports missing
/// resources; a later failure of the card is the fault.
#pragma once

#include <memory>

#include "kernels/backend.hpp"
#include "kernels/cuda/cuda_attention.hpp"
#include "kernels/cuda/cuda_copies.hpp"
#include "kernels/cuda/cuda_matmuls.hpp"

namespace leasehold::cuda {

class CudaBackend final : public Backend {
 public:
  /// Makes the context current on the calling thread, which becomes the engine's.
  static Result<std::unique_ptr<CudaBackend>> create(const Context& context,
                                                     const BackendLimits& limits,
                                                     const ThreadGate& gate, CudaOptions options);

  std::string_view name() const override { return cuda_->name; }
  std::byte* allocate_scratch(std::size_t size_bytes) override;
  void clear_scratch(std::byte* at, std::size_t size_bytes) override {
    cuda_->launcher().zero(at, size_bytes);
  }
  std::span<const float> fetch(const float* at, std::size_t count) override;

  /// The first call prepares a limited number of shapes, fewest positions first; a later one
  /// prepares the shapes that have run.
  std::size_t prepare_steps(const GateSet& gates, const std::function<void()>& record) override;
  void begin_step(const StepInput& input) override;
  LaunchStatus finish_step(const GateSet& gates) override {
    return cuda_->runner->finish(gates, logits_);
  }
  std::optional<TopLogits> top_logits(std::uint32_t row) const override { return logits_.row(row); }
  void when_settled(SettleScope scope, std::move_only_function<void()> callback) override {
    cuda_->launcher().when_settled(scope, std::move(callback));
  }
  std::optional<Error> fault() const override { return cuda_->launcher().fault(); }

  LaunchStatus embedding(const LaunchContext& context, const EmbeddingArgs& args) override;
  LaunchStatus rms_norm(const LaunchContext& context, const RmsNormArgs& args) override {
    const bool has_plain_rows = !args.accumulate && args.vectors_per_row == 1;
    const RowForm next =
        has_plain_rows ? cuda_->prepared.expected_form(args.width) : RowForm::Floats;
    return rms_norm(context, args, {next, true});
  }
  LaunchStatus matmul(const LaunchContext& context, const MatmulArgs& args) override {
    return project(context, {.matmuls = {&args, 1}});
  }
  LaunchStatus project(const LaunchContext& context, const ProjectionArgs& args) override;
  LaunchStatus feed_forward(const LaunchContext& context, const FeedForwardArgs& args) override;
  LaunchStatus low_rank(const LaunchContext& context, const LowRankArgs& args) override;
  LaunchStatus prepare_heads(const LaunchContext& context, const HeadsArgs& args) override {
    return attention_.prepare_heads(context, args);
  }
  LaunchStatus attention(const LaunchContext& context, const AttentionArgs& args) override {
    return attention_.run(context, args);
  }
  LaunchStatus prepare_and_attend(const LaunchContext& context, const HeadsArgs& heads,
                                  const AttentionArgs& attention) override {
    return attention_.prepare_and_run(context, heads, attention);
  }
  /// With experts, one row here holds the rows of all items of a step's row, and no operator reads
  /// its prepared form.
  LaunchStatus swiglu(const LaunchContext& context, const SwiGluArgs& args) override {
    return swiglu(context, args, cuda_->prepared.expected_form(args.width));
  }
  LaunchStatus convolution(const LaunchContext& context, const ConvolutionArgs& args) override;
  LaunchStatus recurrence(const LaunchContext& context, const RecurrenceArgs& args) override;
  LaunchStatus softcap(const LaunchContext& context, const SoftcapArgs& args) override;
  LaunchStatus expert_routing(const LaunchContext& context, const ExpertRoutingArgs& args) override;
  LaunchStatus expert_matmul(const LaunchContext& context, const ExpertMatmulArgs& args) override {
    return matmuls_.expert_matmul(context, args);
  }
  LaunchStatus weighted_sum(const LaunchContext& context, const WeightedSumArgs& args) override;
  LaunchStatus copy_in(const LaunchContext& context, const CopyInArgs& args) override {
    return copies_.copy_in(context, args);
  }
  LaunchStatus copy_blocks(const LaunchContext& context, const CopyBlocksArgs& args) override {
    return copies_.copy_blocks(context, args);
  }
  void write(const LaunchPermit& permit, std::span<const LeasedPiece> pieces) override {
    copies_.write(permit, pieces);
  }
  void clear_workspace() override;
  std::vector<std::uint64_t> units_run() const override { return {cuda_->launcher().units_run()}; }

  /// The number of graphs, for tests and benchmarks.
  std::size_t graph_count() const { return cuda_->runner->graph_count(); }
  void forget_graphs() { cuda_->runner->forget_graphs(); }

 private:
  /// Scratch that the backend hands out, and room on the host for a row of logits.
  struct Scratch {
    DeviceBuffer memory;
    std::size_t used = 0;
    PinnedBuffer fetched;
  };
  CudaBackend(std::unique_ptr<CudaResources> cuda, Scratch scratch, CudaAttention attention,
              LargestLogits logits, CudaCopies copies)
      : cuda_(std::move(cuda)),
        scratch_(std::move(scratch)),
        attention_(std::move(attention)),
        matmuls_(*cuda_),
        logits_(std::move(logits)),
        copies_(std::move(copies)) {}

  /// What a norm stores: rows in the form that the next matmul reads, and floats if an operator
  /// reads those.
  struct NormOutputs {
    RowForm next;
    bool has_floats;
  };
  LaunchStatus rms_norm(const LaunchContext& context, const RmsNormArgs& args, NormOutputs outputs);
  /// Stores its output also in the form that the next matmul reads.
  LaunchStatus swiglu(const LaunchContext& context, const SwiGluArgs& args, RowForm next);

  std::unique_ptr<CudaResources> cuda_;
  Scratch scratch_;
  CudaAttention attention_;
  CudaMatmuls matmuls_;
  LargestLogits logits_;
  CudaCopies copies_;
};

}  // namespace leasehold::cuda
