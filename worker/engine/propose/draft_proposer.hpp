/// Proposes the tokens that a smaller model with the same vocabulary generates greedily.
///
/// Each proposed position takes one forward pass of the draft model, over all sequences of the
/// step. The draft's keys, values and recurrent states lie in memory under a lease of its own: a
/// fixed number of positions for each stop slot. The draft first prefills the tokens of a text that
/// it has not processed, at most kDraftPrefillRows rows in a call; until it has caught up, it
/// proposes nothing for that text. Positions of rejected proposals are overwritten, and a recurrent
/// state continues from that of the accepted text (DraftState). A text longer than the draft
/// model's context gets no proposals.
///
/// The memory of a stop slot holds one sequence's text. It is cleared before the next step after
/// that sequence has ended, and at once when the sequence is revoked or stopped or when a lease
/// ends.
///
/// Every unit polls the draft's own leases as well as those of the sequences. Once one of the
/// draft's own leases is not live, the draft proposes nothing any more, and `on_lost` is called
/// once.
///
/// Lifetime: everything in `Dependencies` outlives the proposer. Threads: the engine's, except
/// `unmap` and `is_live`.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "kernels/model/draft_layout.hpp"
#include "worker/engine/propose/draft_state.hpp"
#include "worker/engine/propose/proposer.hpp"
#include "worker/engine/step_refusals.hpp"
#include "worker/model/transformer.hpp"

namespace leasehold {

/// The memory of the draft's keys, values and recurrent states.
struct DraftMemory {
  LeasedMapping mapping;  ///< Writable.
  LeaseDependency lease;
};

class DraftProposer final : public Proposer {
 public:
  struct Config {
    ModelConfig model;  ///< `n_context` limits the length of a text.
    KvType kv_type = KvType::F16;
    std::uint32_t max_batch_size = 0;  ///< The engine's batch size.
    std::uint32_t speculate = 0;       ///< The engine's most proposals of a sequence.

    DraftLayout layout() const { return draft_layout(model, kv_type, max_batch_size); }
    std::uint64_t memory_bytes() const { return layout().size_bytes(); }  ///< Of DraftMemory.
  };
  struct Dependencies {
    Backend* backend = nullptr;
    ThreadGate* engine_gate = nullptr;
    RevocationObserver* observer = nullptr;
    std::function<void(LeaseId)> on_lost;  ///< Called on the engine's thread; may be empty.
  };

  /// The limits of a backend that computes both the engine's model and the draft model.
  static BackendLimits backend_limits(const BackendLimits& engine, const Config& config);

  DraftProposer(const Config& config, Dependencies dependencies);

  /// Called once, before the first step. Precondition: `memory` has `memory_bytes`.
  void bind(Weights weights, DraftMemory memory);

  /// False once one of the draft's leases is not live. Callable from any thread after `bind`.
  bool is_live() const;

  void retain(Running running) override;
  void propose(std::span<const PlannedRows> parts, std::uint32_t most,
               const GateSet* gates) override;
  std::span<const LeaseDependency> leases() const override;
  void scrub() override { transformer_.scrub(); }
  bool unmap(LeaseId lease) override;

 private:
  /// The memory of a stop slot.
  struct Slot {
    std::uint64_t admission = 0;            // of the sequence that uses the slot; 0: none
    std::vector<Leased<std::byte>> blocks;  // [n_groups, blocks_per_group]
    DraftState state;
    std::vector<TokenId> read;  // the tokens at the first positions
    std::uint32_t written = 0;  // positions written since the last clear

    BlockTableView table(std::uint32_t group, std::size_t blocks_per_group) const {
      return std::span(blocks).subspan(group * blocks_per_group, blocks_per_group);
    }
    bool start(std::span<const TokenId> text);
  };
  /// A sequence in a call.
  struct Draft {
    Sequence* sequence = nullptr;
    Slot* slot = nullptr;
    std::uint32_t index = 0;   // in the gate set
    std::uint32_t most = 0;    // proposals
    std::uint32_t n_rows = 0;  // in this pass
    bool draws = false;        // true: this pass has its logits
    bool is_over = false;

    std::size_t pending() const;
    TokenId token_at(std::size_t position) const;
  };

  /// The rows of a forward pass of the draft model.
  struct Pass {
    std::vector<BlockTableView> block_tables;
    std::vector<StateTableView> state_tables;  // [n_sequences]
    std::vector<RowRef> rows;
    std::vector<TokenId> tokens;
    std::vector<std::uint32_t> logit_rows;
  };

  Slot make_slot(Leased<std::byte>& next) const;
  void begin(std::span<const PlannedRows> parts, std::uint32_t most);
  std::uint32_t positions_left(const Sequence& sequence) const;
  bool plan_pass();
  void add_rows(Draft& draft, std::uint32_t n_rows);
  void take(SequenceMask live, const GateSet& gates);
  bool draw(Draft& draft, std::uint32_t logit_row, const GateSet& gates);
  void disable();
  void clear(Slot& slot);
  void clear_block(Leased<std::byte> block, const GateSet& gates);

  Config config_;
  DraftLayout layout_;
  std::uint32_t usual_rows_;
  Dependencies deps_;
  Transformer transformer_;
  std::optional<Weights> weights_;
  std::mutex mutex_;
  std::optional<LeasedMapping> memory_;  // guarded by mutex_
  std::vector<LeaseDependency> leases_;  // of the weights, then of the memory
  bool is_disabled_ = true;              // true until `bind`
  std::vector<Slot> slots_;              // [max_batch_size]
  std::vector<std::byte> zeros_;         // a block
  StopFlags no_stops_;

  // Valid within one call of `propose`.
  std::vector<Draft> drafts_;
  Pass pass_;
};

}  // namespace leasehold
