/// The operators of the forward pass, behind one interface.
///
/// Every operator splits its work into units and passes each through a ThreadGate: announce, poll,
/// run. A unit may skip a row whose sequence is not live, or compute garbage for it; a dead row
/// never changes another row. Once a unit has seen a sequence dead, it reads no memory of that
/// sequence.
///
/// A step is `begin_step`, launches, `finish_step`. In between, a backend may run behind its
/// caller: the results of launches are complete once the step is finished. The plain pointers of
/// operators point into scratch (`allocate_scratch`), which may be device memory; only launches and
/// the functions below may follow them. The contents of StepInput are in host memory.
///
/// Numerics: the bits of a row do not depend on the other rows of the step or on the number of
/// threads. All CPU backends give the same bits on every SIMD path; CUDA gives them too, except in
/// matmuls of halves. The order of arithmetic is in kernels/README.md (*Numerics*).
///
/// Lifetime: arguments live until the call returns, StepInput until the step is finished. Threads:
/// one launch at a time, from one engine thread; a backend may use threads of its own. Any thread
/// may call `when_settled`. Errors: create() reports what can fail on the host; `fault` reports a
/// failed device.
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

/// The largest step that a backend must support.
struct BackendLimits {
  std::uint32_t max_rows = 256;
  std::uint32_t max_context = 0;
  std::uint32_t n_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t max_width = 0;  ///< Longest row of any matrix.
  std::uint32_t n_experts = 0;
  std::uint32_t n_experts_used = 0;  ///< Per row.
  /// Bytes for attention's partial results. A step that needs more is split into several launches;
  /// one row always fits.
  std::size_t attention_scratch_bytes = 32u << 20;
  std::uint32_t max_logit_rows = 64;
  std::uint32_t rope_dim = 0;
  std::uint32_t n_vocab = 0;
  std::uint32_t n_kv_groups = 1;  ///< KvLayout::n_groups().
  /// The most blocks of a copy of a sequence's recurrent state; 0: no layer has such a state.
  std::uint32_t state_blocks = 0;
  std::uint32_t state_key_dim = 0;  ///< Elements of a key of such a state.
  std::uint32_t adapter_slots = 0;  ///< Weights that adapters may change; 0: there are no adapters.
  std::size_t scratch_bytes = 0;    ///< Total that the caller will request with `allocate_scratch`.
};

struct TokenLogit {
  std::uint32_t token = 0;
  float logit = 0;
};

/// The largest logits of a row, found on the device so that the host need not fetch the row.
struct TopLogits {
  std::vector<TokenLogit> tokens;  ///< Descending by logit; equal logits ascend by token.
  bool all_finite = false;         ///< Every logit of the row is finite.
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;

  // ---- scratch

  /// Returns the next piece of scratch, zeroed and aligned to 256 bytes. It lives as long as the
  /// backend. Precondition: BackendLimits::scratch_bytes has room for it.
  virtual std::byte* allocate_scratch(std::size_t size_bytes) = 0;
  /// Zeroes scratch. Call between steps.
  virtual void clear_scratch(std::byte* at, std::size_t size_bytes) = 0;
  /// Returns a host-memory view of scratch, valid until the next call or step. Call between steps.
  /// Precondition: `count` is at most n_vocab or max_width of BackendLimits.
  virtual std::span<const float> fetch(const float* at, std::size_t count) = 0;

  // ---- a step

  /// Prepares the usual shapes of decode steps under the engine's leases of `gates`; a step of
  /// another shape is prepared when it first runs. Calls `record` any number of times; each call
  /// runs all operators of a step of one row, which this backend does not execute. Returns the
  /// number of shapes that are ready. Call between steps, each time after weights were bound.
  virtual std::size_t prepare_steps(const GateSet&, const std::function<void()>& /*record*/) {
    return 0;
  }
  /// Starts a step. `input` and all it refers to stay unchanged until finish_step returns.
  virtual void begin_step(const StepInput& /*input*/) {}
  /// True if launches may be given consecutive rows of the step instead of all, and may be left out
  /// where no adapter changes a weight.
  virtual bool accepts_row_ranges() const { return false; }
  /// Waits until all launches of the step are over. Returns the sequences that this wait did not
  /// find dead; a backend that does not wait returns all. The caller intersects the result with the
  /// statuses of the launches.
  virtual LaunchStatus finish_step(const GateSet& gates) { return {gates.all()}; }
  /// Returns the largest logits of row i of the last finished step's logits; nullopt if the host
  /// must fetch that row.
  virtual std::optional<TopLogits> top_logits(std::uint32_t) const { return std::nullopt; }
  /// Calls `callback` once all launches of the scope that began before this call are over: on
  /// another thread, or inside this function if none is running. Any thread may call this function.
  /// After a fault the callback is destroyed without being called.
  virtual void when_settled(SettleScope, std::move_only_function<void()> callback) { callback(); }
  /// The error that stopped this backend, or nullopt. A fault is final: restart the process.
  virtual std::optional<Error> fault() const { return std::nullopt; }

  // ---- the operators: op_args.hpp has the formula and the shapes of each. Each returns the
  // sequences that all its units found live.

  virtual LaunchStatus embedding(const LaunchContext& context, const EmbeddingArgs& args) = 0;
  virtual LaunchStatus rms_norm(const LaunchContext& context, const RmsNormArgs& args) = 0;
  virtual LaunchStatus matmul(const LaunchContext& context, const MatmulArgs& args) = 0;
  virtual LaunchStatus low_rank(const LaunchContext& context, const LowRankArgs& args) = 0;
  virtual LaunchStatus prepare_heads(const LaunchContext& context, const HeadsArgs& args) = 0;
  virtual LaunchStatus attention(const LaunchContext& context, const AttentionArgs& args) = 0;
  virtual LaunchStatus convolution(const LaunchContext& context, const ConvolutionArgs& args) = 0;
  virtual LaunchStatus recurrence(const LaunchContext& context, const RecurrenceArgs& args) = 0;
  virtual LaunchStatus swiglu(const LaunchContext& context, const SwiGluArgs& args) = 0;
  virtual LaunchStatus softcap(const LaunchContext& context, const SoftcapArgs& args) = 0;
  virtual LaunchStatus expert_routing(const LaunchContext& context,
                                      const ExpertRoutingArgs& args) = 0;
  virtual LaunchStatus expert_matmul(const LaunchContext& context,
                                     const ExpertMatmulArgs& args) = 0;
  virtual LaunchStatus weighted_sum(const LaunchContext& context, const WeightedSumArgs& args) = 0;
  virtual LaunchStatus copy_in(const LaunchContext& context, const CopyInArgs& args) = 0;

  /// Copies blocks between KV memory and swap memory, which one lease owns or two. Call between
  /// steps. Returns when the copies are over; they are complete if the sequence is live in the
  /// returned status.
  virtual LaunchStatus copy_blocks(const LaunchContext& context, const CopyBlocksArgs& args) = 0;

  /// Runs the norm or SwiGLU, then the matmuls, then the caps, by default as one launch each. A
  /// backend may fuse them; the contents of x are then undefined if a norm or SwiGLU computes it.
  virtual LaunchStatus project(const LaunchContext& context, const ProjectionArgs& args);

  /// Prepares the heads, then attends, by default as one launch each. Both have the same layout and
  /// queries. A backend may fuse them; the contents of the queries, keys and values are then
  /// undefined.
  virtual LaunchStatus prepare_and_attend(const LaunchContext& context, const HeadsArgs& heads,
                                          const AttentionArgs& attention);

  /// Runs gate and up as one projection and down as another, by default. A backend may fuse them;
  /// the contents of x and of the outputs of gate and up are then undefined.
  virtual LaunchStatus feed_forward(const LaunchContext& context, const FeedForwardArgs& args);

  /// Writes pieces into leased memory that the permit covers, and returns when all are written. A
  /// piece with `is_last` has 8 bytes and an address aligned to 8. After a fault it returns early;
  /// check fault().
  virtual void write(const LaunchPermit& permit, std::span<const LeasedPiece> pieces) = 0;

  /// Clears intermediate results that launches left in the backend's own memory, except scratch.
  /// The engine calls it after a tenant's lease was revoked during a step.
  virtual void clear_workspace() = 0;

  /// Units run since creation, per gate thread. Tests use it to count units after a revocation.
  virtual std::vector<std::uint64_t> units_run() const = 0;

 protected:
  /// Caps the products of a projection, if it has a cap.
  LaunchStatus cap_products(const LaunchContext& context, const ProjectionArgs& args);
};

}  // namespace leasehold
