/// The operators of the forward pass, behind one interface.
///
/// Every operator splits its work into units and passes each through a ThreadGate: announce, poll,
/// run. Rows whose sequence is not live may be skipped or computed to garbage; they never disturb
/// another row, and nothing of a dead sequence's memory is read once a unit saw it dead.
///
/// A step is `begin_step`, launches, `finish_step`. Between the two a backend may run behind its
/// caller: what launches computed is there once the step is finished. The plain pointers of
/// operators point into scratch (`allocate_scratch`), which may be a device's memory: only launches
/// and the functions below look there. What StepInput names is passed as it stands there, in the
/// host's memory.
///
/// Numerics: results of a row are bit for bit the same whatever else is in the step, however many
/// threads there are. The CPU backends have the same bits as each other on every SIMD path, and
/// CUDA has its own. The written order is in kernels/README.md (*Numerics*).
///
/// Lifetime: arguments live until the call returns, StepInput until the step is finished.
/// Threads: one launch at a time, from one engine thread; a backend may use threads of its own.
/// `when_drained` from any. Errors: what can fail on the host is in create(); `fault` says what
/// became of a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "ipc/segment/thread_gate.hpp"
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
  std::uint32_t n_experts_used = 0;  ///< By a row.
  /// For attention's partial results. A step that needs more takes more launches; one row's worth
  /// is always there.
  std::size_t attention_scratch_bytes = 32u << 20;
  std::uint32_t max_logit_rows = 64;
  std::uint32_t rope_dim = 0;
  std::uint32_t n_vocab = 0;
  std::size_t scratch_bytes = 0;  ///< All that will be taken by `allocate_scratch`.
};

struct TokenLogit {
  std::uint32_t token = 0;
  float logit = 0;
};

/// What a device knows of a row of logits without anybody having to fetch it.
struct TopLogits {
  std::vector<TokenLogit> tokens;  ///< The largest first; of equal ones the lower token.
  bool all_finite = false;         ///< Of the whole row.
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;

  // ---- scratch

  /// The next piece of scratch, zeroed and aligned to 256 bytes, for as long as the backend lives.
  /// Precondition: BackendLimits::scratch_bytes has room for it.
  virtual std::byte* allocate_scratch(std::size_t size_bytes) = 0;
  /// Makes zeros of it. Between steps.
  virtual void clear_scratch(std::byte* at, std::size_t size_bytes) = 0;
  /// What stands there, in the host's memory, until the next call or step. Between steps.
  virtual std::span<const float> fetch(const float* at, std::size_t count) = 0;

  // ---- a step

  virtual void begin_step(const StepInput&) {}
  /// Returns once all launches of the step are over, with whom they were still for.
  virtual LaunchStatus finish_step(const GateSet& gates) { return {gates.all()}; }
  /// Of logit row i of the step just finished; nothing where the host has to look itself.
  virtual std::optional<TopLogits> top_logits(std::uint32_t) const { return std::nullopt; }
  /// Calls `callback` once every launch begun before this call is over, from whatever thread; at
  /// once when there is none. Any thread.
  virtual void when_drained(std::move_only_function<void()> callback) { callback(); }
  /// Why this backend computes nothing any more. Final: the process has to be started anew.
  virtual std::optional<Error> fault() const { return std::nullopt; }

  virtual LaunchStatus embedding(const LaunchContext& context, const EmbeddingArgs& args) = 0;
  virtual LaunchStatus rms_norm(const LaunchContext& context, const RmsNormArgs& args) = 0;
  virtual LaunchStatus matmul(const LaunchContext& context, const MatmulArgs& args) = 0;
  virtual LaunchStatus rope(const LaunchContext& context, const RopeArgs& args) = 0;
  virtual LaunchStatus kv_append(const LaunchContext& context, const KvAppendArgs& args) = 0;
  virtual LaunchStatus attention(const LaunchContext& context, const AttentionArgs& args) = 0;
  virtual LaunchStatus swiglu(const LaunchContext& context, const SwiGluArgs& args) = 0;
  virtual LaunchStatus expert_routing(const LaunchContext& context,
                                      const ExpertRoutingArgs& args) = 0;
  virtual LaunchStatus expert_matmul(const LaunchContext& context,
                                     const ExpertMatmulArgs& args) = 0;
  virtual LaunchStatus weighted_sum(const LaunchContext& context, const WeightedSumArgs& args) = 0;
  virtual LaunchStatus copy_in(const LaunchContext& context, const CopyInArgs& args) = 0;

  /// Norms, rotations and the append, one launch after the other; a backend that can do them in one
  /// does.
  virtual LaunchStatus prepare_heads(const LaunchContext& context, const HeadsArgs& args);

  /// Writes pieces into memory the permit is for, and returns when they are there.
  virtual void write(const LaunchPermit& permit, std::span<const LeasedPiece> pieces) = 0;

  /// Forgets what launches left in memory of the backend's own beside scratch, for when a tenant
  /// died in the step.
  virtual void clear_workspace() = 0;

  /// Units run since creation, per gate thread; for tests that count what happened after a flip.
  virtual std::vector<std::uint64_t> units_run() const = 0;
};

}  // namespace leasehold
