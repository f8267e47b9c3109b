/// A backend that fails while one row is drawn.
#pragma once

#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "kernels/backend.hpp"

namespace leasehold::testing {

/// Passes everything on, and throws when the host reads the logits of one row.
class ThrowingBackend final : public Backend {
 public:
  explicit ThrowingBackend(std::unique_ptr<Backend> backend) : to_(std::move(backend)) {}

  /// Throws at the next fetch number `row`, counted from 0.
  void throw_at(std::size_t row) { fetches_left_ = row; }

  std::span<const float> fetch(const float* at, std::size_t count) override {
    if (fetches_left_ && (*fetches_left_)-- == 0) {
      fetches_left_.reset();
      throw std::bad_alloc();
    }
    return to_->fetch(at, count);
  }

  std::string_view name() const override { return to_->name(); }
  std::byte* allocate_scratch(std::size_t size) override { return to_->allocate_scratch(size); }
  void clear_scratch(std::byte* at, std::size_t size) override { to_->clear_scratch(at, size); }
  void begin_step(const StepInput& input) override { to_->begin_step(input); }
  LaunchStatus finish_step(const GateSet& gates) override { return to_->finish_step(gates); }
  LaunchStatus embedding(const LaunchContext& context, const EmbeddingArgs& args) override {
    return to_->embedding(context, args);
  }
  LaunchStatus rms_norm(const LaunchContext& context, const RmsNormArgs& args) override {
    return to_->rms_norm(context, args);
  }
  LaunchStatus matmul(const LaunchContext& context, const MatmulArgs& args) override {
    return to_->matmul(context, args);
  }
  LaunchStatus low_rank(const LaunchContext& context, const LowRankArgs& args) override {
    return to_->low_rank(context, args);
  }
  LaunchStatus prepare_heads(const LaunchContext& context, const HeadsArgs& args) override {
    return to_->prepare_heads(context, args);
  }
  LaunchStatus attention(const LaunchContext& context, const AttentionArgs& args) override {
    return to_->attention(context, args);
  }
  LaunchStatus convolution(const LaunchContext& context, const ConvolutionArgs& args) override {
    return to_->convolution(context, args);
  }
  LaunchStatus recurrence(const LaunchContext& context, const RecurrenceArgs& args) override {
    return to_->recurrence(context, args);
  }
  LaunchStatus swiglu(const LaunchContext& context, const SwiGluArgs& args) override {
    return to_->swiglu(context, args);
  }
  LaunchStatus softcap(const LaunchContext& context, const SoftcapArgs& args) override {
    return to_->softcap(context, args);
  }
  LaunchStatus expert_routing(const LaunchContext& context,
                              const ExpertRoutingArgs& args) override {
    return to_->expert_routing(context, args);
  }
  LaunchStatus expert_matmul(const LaunchContext& context, const ExpertMatmulArgs& args) override {
    return to_->expert_matmul(context, args);
  }
  LaunchStatus copy_blocks(const LaunchContext& context, const CopyBlocksArgs& args) override {
    return to_->copy_blocks(context, args);
  }
  LaunchStatus weighted_sum(const LaunchContext& context, const WeightedSumArgs& args) override {
    return to_->weighted_sum(context, args);
  }
  LaunchStatus copy_in(const LaunchContext& context, const CopyInArgs& args) override {
    return to_->copy_in(context, args);
  }
  void write(const LaunchPermit& permit, std::span<const LeasedPiece> pieces) override {
    to_->write(permit, pieces);
  }
  void clear_workspace() override { to_->clear_workspace(); }
  std::vector<std::uint64_t> units_run() const override { return to_->units_run(); }

 private:
  std::unique_ptr<Backend> to_;
  std::optional<std::size_t> fetches_left_;
};

}  // namespace leasehold::testing
