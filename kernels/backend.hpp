/// The operators of the forward pass, behind one interface.
///
/// Every operator splits its work into units and passes each through a ThreadGate: announce, poll,
/// run. Rows whose sequence is not live may be skipped or computed to garbage; they never disturb
/// another row, and nothing of a dead sequence's memory is read once a unit saw it dead.
///
/// Numerics: results of a row are bit for bit the same whatever else is in the step, however many
/// threads there are, on every CPU backend and SIMD path. The written order is in
/// kernels/README.md (*Numerics*).
///
/// Lifetime: arguments live until the call returns. Threads: one launch at a time, from one engine
/// thread; a backend may use threads of its own. Errors: none; what can fail is in create().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/launch_status.hpp"
#include "kernels/op_args.hpp"

namespace leasehold {

/// The largest step a backend must be ready for.
struct BackendLimits {
  std::uint32_t max_rows = 256;
  std::uint32_t max_context = 0;
  std::uint32_t n_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t max_width = 0;  ///< Longest row of any matrix.
  std::uint32_t n_experts = 0;
  /// For attention's partial results. A step that needs more takes more launches; one row's worth
  /// is always there.
  std::size_t attention_scratch_bytes = 32u << 20;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;

  virtual LaunchStatus embedding(const LaunchContext& context, const EmbeddingArgs& args) = 0;
  virtual LaunchStatus rms_norm(const LaunchContext& context, const RmsNormArgs& args) = 0;
  virtual LaunchStatus matmul(const LaunchContext& context, const MatmulArgs& args) = 0;
  virtual LaunchStatus rope(const LaunchContext& context, const RopeArgs& args) = 0;
  virtual LaunchStatus kv_append(const LaunchContext& context, const KvAppendArgs& args) = 0;
  virtual LaunchStatus attention(const LaunchContext& context, const AttentionArgs& args) = 0;
  virtual LaunchStatus swiglu(const LaunchContext& context, const SwiGluArgs& args) = 0;
  virtual LaunchStatus expert_choice(const LaunchContext& context,
                                     const ExpertChoiceArgs& args) = 0;
  virtual LaunchStatus expert_matmul(const LaunchContext& context,
                                     const ExpertMatmulArgs& args) = 0;
  virtual LaunchStatus weighted_sum(const LaunchContext& context, const WeightedSumArgs& args) = 0;
  virtual LaunchStatus copy_in(const LaunchContext& context, const CopyInArgs& args) = 0;

  /// Forgets what launches left in the backend's own scratch, for when a tenant died in the step.
  virtual void scrub_scratch() = 0;

  /// Units run since creation, per gate thread; for tests that count what happened after a flip.
  virtual std::vector<std::uint64_t> units_run() const = 0;
};

}  // namespace leasehold
