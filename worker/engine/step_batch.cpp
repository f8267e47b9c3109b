#include "worker/engine/step_batch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/expects.hpp"

namespace leasehold {
namespace {

/// Errors: LeaseFenced for a block that is not memory of this lease.
Result<std::vector<Leased<std::byte>>> addresses_of(LeaseId lease, std::span<const BlockId> blocks,
                                                    const LeaseMemory& memory) {
  std::vector<Leased<std::byte>> addresses;
  for (const BlockId block : blocks) addresses.push_back(TRY(memory.address(lease, block)));
  return addresses;
}

/// The lease of a block of the sequence's positions. Published blocks are those of the shared
/// lease, which the sequence also depends on.
LeaseId lease_of(const Sequence& sequence, std::uint32_t block) {
  const bool is_published = sequence.shared_lease && block < sequence.blocks.published_blocks();
  return is_published ? *sequence.shared_lease : sequence.request.lease;
}

/// A table for each group of layers. That of a group with a window begins with the window's blocks.
Result<StepBatch::Tables> tables_of(const Sequence& sequence, const LeaseMemory& memory) {
  const std::span<const BlockId> blocks = sequence.blocks.blocks();
  const WindowBlocks& windows = sequence.blocks.windows();
  StepBatch::Tables tables(1 + windows.shape().window.n_groups);
  for (std::uint32_t i = 0; i < blocks.size(); ++i)
    tables[0].blocks.push_back(TRY(memory.address(lease_of(sequence, i), blocks[i])));
  for (std::size_t group = 1; group < tables.size(); ++group) {
    tables[group].first = windows.first();
    for (std::uint32_t i = windows.first(); i < windows.end(); ++i)
      tables[group].blocks.push_back(
          TRY(memory.address(lease_of(sequence, i), windows.of(i)[group - 1])));
  }
  return tables;
}

/// Checks that the step writes no published block: its rows begin at the first uncommitted
/// position.
Result<void> check_writes_own(const Sequence& sequence) {
  const std::uint32_t published = sequence.blocks.published_blocks();
  const std::uint32_t next = sequence.blocks.committed();
  if (next >= published * KvLayout::kBlockTokens) return {};
  return fail(Errc::PermissionDenied,
              fmt::format("position {} lies in a published block, which is read-only", next));
}

}  // namespace

Result<std::vector<LeaseDependency>> dependencies_of(const Sequence& sequence,
                                                     const TableReader& table) {
  std::vector<LeaseDependency> leases;
  for (const SequenceLease& each : sequence.leases())
    leases.push_back(TRY(table.dependency(each.lease)));
  return leases;
}

Result<void> StepBatch::add(const PlannedRows& part, const LeaseMemory& memory,
                            const TableReader& table) {
  const Sequence& sequence = *part.sequence;
  TRY(check_writes_own(sequence));
  const std::vector<LeaseDependency> leases = TRY(dependencies_of(sequence, table));
  Tables tables = TRY(tables_of(sequence, memory));
  auto record = TRY(addresses_of(sequence.request.lease, sequence.blocks.record_blocks(), memory));
  StateAddresses state = TRY(state_addresses(sequence, memory));
  const std::uint32_t index = gates_.sequence_count();
  gates_.add_sequence(leases, sequence.stop_slot);
  tables_.push_back(std::move(tables));
  if (sequence.blocks.recurrent().exists()) states_.push_back(std::move(state));
  records_.push_back({std::move(record), memory.block_size_bytes()});
  const AdapterUse& adapter = sequence.request.adapter.use;
  expects(!adapter || adapter->matrices, "a loaded adapter has matrices");
  adapters_.push_back(adapter ? adapter->matrices.get() : nullptr);
  has_adapter_ |= adapters_.back() != nullptr;
  add_rows(part, index);
  return {};
}

Result<StepBatch::StateAddresses> StepBatch::state_addresses(const Sequence& sequence,
                                                             const LeaseMemory& memory) {
  const LeaseId lease = sequence.request.lease;
  const RecurrentState& state = sequence.blocks.recurrent();
  const auto from = TRY(addresses_of(lease, state.from(), memory));
  auto to = TRY(addresses_of(lease, state.to(), memory));
  return StateAddresses{.from = {from.begin(), from.end()}, .to = std::move(to)};
}

void StepBatch::add_rows(const PlannedRows& part, std::uint32_t index) {
  const Sequence& sequence = *part.sequence;
  const std::uint32_t first = sequence.blocks.committed();
  const std::uint32_t known = part.n_rows - part.n_proposed;
  for (std::uint32_t i = 0; i < part.n_rows; ++i) {
    rows_.push_back({index, first + i});
    tokens_.push_back(i < known ? sequence.tokens[first + i] : sequence.proposals[i - known]);
  }
  const std::size_t first_row = rows_.size() - part.n_rows;
  prompt_logit_index_.push_back(static_cast<std::uint32_t>(logit_rows_.size()));
  const std::uint32_t reported = std::max(sequence.request.reported_positions, 1u);
  for (std::uint32_t position = reported; position < sequence.reported_after(known); ++position)
    logit_rows_.push_back(static_cast<std::uint32_t>(first_row + position - 1 - first));
  add_pooled_rows(part, static_cast<std::uint32_t>(first_row));
  logit_index_.push_back(std::nullopt);
  if (!part.wants_token || sequence.request.embedding) return;
  logit_index_.back() = static_cast<std::uint32_t>(logit_rows_.size());
  for (std::size_t row = rows_.size() - 1 - part.n_proposed; row < rows_.size(); ++row)
    logit_rows_.push_back(static_cast<std::uint32_t>(row));
}

void StepBatch::add_pooled_rows(const PlannedRows& part, std::uint32_t first_row) {
  const Sequence& sequence = *part.sequence;
  const auto [begin, end] = sequence.positions_to_pool(part.n_rows);
  const std::uint32_t committed = sequence.blocks.committed();
  const RowRange rows = begin == end
                            ? RowRange{first_row, first_row}
                            : RowRange{first_row + begin - committed, first_row + end - committed};
  pooled_rows_.push_back(rows);
  for (std::uint32_t row = rows.begin; row < rows.end; ++row) hidden_rows_.push_back(row);
}

ForwardInput StepBatch::input() const {
  block_tables_.clear();
  for (std::size_t group = 0; !tables_.empty() && group < tables_.front().size(); ++group)
    for (const Tables& tables : tables_)
      block_tables_.emplace_back(tables[group].blocks, tables[group].first);
  state_tables_.clear();
  for (const StateAddresses& state : states_)
    state_tables_.push_back({.from = state.from, .to = state.to});
  return {
      .gates = &gates_,
      .rows = rows_,
      .tokens = tokens_,
      .block_tables = block_tables_,
      .logit_rows = logit_rows_,
      .hidden_rows = hidden_rows_,
      .state_tables = state_tables_,
      .adapters = has_adapter_ ? std::span(adapters_) : std::span<const AdapterMatrices* const>()};
}

}  // namespace leasehold
