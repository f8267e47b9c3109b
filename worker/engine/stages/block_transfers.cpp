#include "worker/engine/stages/block_transfers.hpp"

#include <algorithm>

#include "worker/engine/check_device.hpp"

namespace leasehold {

Result<void> BlockTransfers::make(StepPlan& plan) {
  if (deps_.scheduler->transfers().empty()) return {};
  SequenceGates transfer_gates(deps_.gates, sequences(), deps_.weights->leases());
  const PartErrors errors = run(transfer_gates);
  TRY(check_device(*deps_.backend));
  if (transfer_gates.gates().engine_refused()) {
    transfer_gates.end_refused();
    return deps_.weights->step_failed("no step ran");
  }
  for (const auto& [part, error] : errors) {
    if (transfer_gates.is_refused(part)) continue;
    deps_.gates.ender->end_without_lease(*transfer_gates.plan().parts[part].sequence, error);
  }
  transfer_gates.end_refused();
  std::erase_if(plan.parts, [this](const PlannedRows& part) {
    return !deps_.scheduler->running().contains(part.sequence);
  });
  return {};
}

/// All running sequences and those being swapped out. Returns at most kMaxStepSequences: no
/// sequence is admitted while transfers are pending, and a sequence being swapped out was running
/// in the plan that listed its transfer.
StepPlan BlockTransfers::sequences() const {
  StepPlan plan = all_running(*deps_.scheduler);
  for (const SwapTransfer& transfer : deps_.scheduler->transfers()) {
    const auto known = std::ranges::find(plan.parts, transfer.sequence, &PlannedRows::sequence);
    if (known == plan.parts.end()) plan.parts.push_back({.sequence = transfer.sequence});
  }
  return plan;
}

/// Unfinished transfers of a sequence that is no longer live stay in the list until the sequence
/// ends.
BlockTransfers::PartErrors BlockTransfers::run(const SequenceGates& sequences) {
  PartErrors errors;
  const std::vector<PlannedRows>& parts = sequences.plan().parts;
  const std::vector<SwapTransfer> transfers = deps_.scheduler->transfers();
  for (const SwapTransfer& transfer : transfers) {
    const auto found = std::ranges::find(parts, transfer.sequence, &PlannedRows::sequence);
    const auto part = static_cast<std::uint32_t>(found - parts.begin());
    const Result<std::vector<LeasedCopy>> copies = addresses_of(transfer);
    if (!copies) {
      errors.emplace(part, copies.error());
      continue;
    }
    const TimePoint began = deps_.clock->now();
    const LaunchStatus status =
        deps_.backend->copy_blocks({.gates = &sequences.gates(), .rows = {}},
                                   {.sequence = part,
                                    .copies = *copies,
                                    .block_size_bytes = deps_.memory->block_size_bytes()});
    const bool is_made = (status.live >> part & 1) != 0;
    if (is_made) deps_.scheduler->transfer_done(*transfer.sequence, deps_.clock->now() - began);
  }
  return errors;
}

/// Errors: LeaseFenced for a block that is not memory of the sequence's lease.
Result<std::vector<LeasedCopy>> BlockTransfers::addresses_of(const SwapTransfer& transfer) const {
  const LeaseId lease = transfer.sequence->request.lease;
  std::vector<LeasedCopy> copies;
  for (const BlockCopy& copy : transfer.copies) {
    const Leased<std::byte> to = TRY(address_of(lease, copy.to));
    const Leased<const std::byte> from = TRY(address_of(lease, copy.from));
    copies.push_back({.to = to, .from = from});
  }
  return copies;
}

Result<Leased<std::byte>> BlockTransfers::address_of(LeaseId lease, BlockId block) const {
  if (block.extent == kStagingExtent) return deps_.spills->staging(block.index, lease);
  return deps_.memory->address(lease, block);
}

}  // namespace leasehold
