#include "worker/engine/step_batch.hpp"

namespace leasehold {
namespace {

/// Errors: LeaseFenced for a block that is not memory of this lease.
Result<std::vector<Leased<std::byte>>> addresses_of(LeaseId lease, std::span<const BlockId> blocks,
                                                    const LeaseMemory& memory) {
  std::vector<Leased<std::byte>> addresses;
  for (const BlockId block : blocks) addresses.push_back(TRY(memory.address(lease, block)));
  return addresses;
}

}  // namespace

Result<void> StepBatch::add(const PlannedRows& part, const LeaseMemory& memory,
                            const TableReader& table) {
  const Sequence& sequence = *part.sequence;
  const LeaseDependency lease = TRY(table.dependency(sequence.request.lease));
  const LeaseId owner = sequence.request.lease;
  auto addresses = TRY(addresses_of(owner, sequence.blocks.blocks(), memory));
  auto record = TRY(addresses_of(owner, sequence.blocks.record_blocks(), memory));
  const std::uint32_t index = gates_.sequence_count();
  gates_.add_sequence({&lease, 1}, sequence.stop_slot);
  addresses_.push_back(std::move(addresses));
  records_.push_back({std::move(record), memory.block_size_bytes()});
  add_rows(part, index);
  return {};
}

void StepBatch::add_rows(const PlannedRows& part, std::uint32_t index) {
  const std::uint32_t first = part.sequence->blocks.committed();
  for (std::uint32_t i = 0; i < part.n_rows; ++i) {
    rows_.push_back({index, first + i});
    tokens_.push_back(part.sequence->tokens[first + i]);
  }
  logit_index_.push_back(std::nullopt);
  if (!part.wants_token) return;
  logit_index_.back() = static_cast<std::uint32_t>(logit_rows_.size());
  logit_rows_.push_back(static_cast<std::uint32_t>(rows_.size() - 1));
}

ForwardInput StepBatch::input() const {
  block_tables_.assign(addresses_.begin(), addresses_.end());
  return {.gates = &gates_,
          .rows = rows_,
          .tokens = tokens_,
          .block_tables = block_tables_,
          .logit_rows = logit_rows_};
}

}  // namespace leasehold
