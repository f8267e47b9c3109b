/// A step plan laid out for the forward pass: rows, tokens, block addresses, gates.
///
/// Lifetime: plan, memory and listener outlive the batch. Not movable: its views point into itself.
#pragma once

#include <optional>
#include <vector>

#include "ipc/table/table_reader.hpp"
#include "worker/kv/lease_memory.hpp"
#include "worker/kv/sequence_record.hpp"
#include "worker/model/row_range.hpp"
#include "worker/model/transformer.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

/// The words of Sequence::leases. Errors: UnknownLease.
Result<std::vector<LeaseDependency>> dependencies_of(const Sequence& sequence,
                                                     const TableReader& table);

class StepBatch {
 public:
  /// The blocks of a sequence in a group of layers, from block `first` of its positions on.
  struct Table {
    std::vector<Leased<std::byte>> blocks;
    std::uint32_t first = 0;
  };
  using Tables = std::vector<Table>;  // [n_groups]

  /// `step` is unique per engine and starts at 1.
  StepBatch(std::uint64_t step, const StopFlags& stops, RefusalListener& listener)
      : gates_(step, stops, listener) {}
  StepBatch(const StepBatch&) = delete;
  StepBatch& operator=(const StepBatch&) = delete;

  /// Adds one sequence. Errors: LeaseFenced when a block is not memory of the sequence's lease, or
  /// a published block is not memory of the shared lease; PermissionDenied when a row would be
  /// written to a published block; UnknownLease. After an error the batch is unchanged.
  Result<void> add(const PlannedRows& part, const LeaseMemory& memory, const TableReader& table);

  /// Makes the whole step depend on these leases.
  void add_engine_leases(std::span<const LeaseDependency> leases) {
    gates_.add_engine_leases(leases);
  }

  ForwardInput input() const;
  const GateSet& gates() const { return gates_; }

  /// The record memory of sequence `index`.
  const RecordMemory& record(std::uint32_t index) const { return records_[index]; }

  /// The first row of logits for the prompt positions that sequence `index` reports; the others
  /// follow (Sequence::reported_after). Position 0 has none.
  std::uint32_t prompt_logit_index(std::uint32_t index) const { return prompt_logit_index_[index]; }
  /// The rows of the step whose hidden states sequence `index` pools, as [begin, end).
  RowRange pooled_rows(std::uint32_t index) const { return pooled_rows_[index]; }
  /// The first row of logits of sequence `index`; the rows of its proposals follow. Nothing when
  /// the sequence draws no token.
  std::optional<std::uint32_t> logit_index(std::uint32_t index) const {
    return logit_index_[index];
  }

 private:
  /// The copies of a sequence's recurrent state.
  struct StateAddresses {
    std::vector<Leased<const std::byte>> from;
    std::vector<Leased<std::byte>> to;
  };
  static Result<StateAddresses> state_addresses(const Sequence& sequence,
                                                const LeaseMemory& memory);
  void add_rows(const PlannedRows& part, std::uint32_t index);
  void add_pooled_rows(const PlannedRows& part, std::uint32_t first_row);

  GateSet gates_;
  std::vector<RowRef> rows_;
  std::vector<TokenId> tokens_;
  std::vector<Tables> tables_;          // [n_sequences]
  std::vector<StateAddresses> states_;  // [n_sequences], or empty
  std::vector<RecordMemory> records_;
  std::vector<const AdapterMatrices*> adapters_;  // [n_sequences]; null: the base model
  bool has_adapter_ = false;
  mutable std::vector<BlockTableView> block_tables_;
  mutable std::vector<StateTableView> state_tables_;
  std::vector<std::uint32_t> logit_rows_;
  std::vector<std::uint32_t> hidden_rows_;
  std::vector<RowRange> pooled_rows_;
  std::vector<std::uint32_t> prompt_logit_index_;
  std::vector<std::optional<std::uint32_t>> logit_index_;
};

}  // namespace leasehold
