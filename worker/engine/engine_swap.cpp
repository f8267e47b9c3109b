// The part of Engine that copies the blocks of sequences that are swapped out and in.
#include <fmt/format.h>

#include <algorithm>

#include "common/checksum.hpp"
#include "worker/engine/engine.hpp"
#include "worker/engine/gate_numbers.hpp"

namespace leasehold {

/// A checksum of the blocks' layout for the seals of spilled blocks; it differs between layouts.
std::uint64_t Engine::seal_layout(const KvLayout& layout) {
  Checksum sum;
  for (const std::uint32_t part : {layout.n_layers, layout.n_kv_heads, layout.head_dim,
                                   static_cast<std::uint32_t>(layout.type)})
    sum.add(&part, sizeof part);
  return sum.value;
}

/// Makes the transfers in the order of the list, and drops the parts of sequences that ended. The
/// gate set holds all running sequences and those being swapped out, so a request that is revoked
/// or stopped ends within one unit, whichever sequence is copied.
Result<void> Engine::make_transfers(StepPlan& plan) {
  if (scheduler_.transfers().empty()) return {};
  StepPlan beside = sequences_for_transfers();
  StepRefusals refusals(beside, *deps_.table, *deps_.clock, *deps_.observer);
  GateSet gates(next_gate_number(), deps_.running_requests->stops(), refusals);
  gates.add_engine_leases(weights_->leases());
  add_gates(beside, gates);
  const PartErrors errors = run_transfers(beside, gates);
  TRY(check_device());
  if (gates.engine_refused()) {
    end_refused(beside, refusals);
    return fail(Errc::EngineDecodeFailed,
                fmt::format("no step ran: {}", check_weights().error().detail));
  }
  for (const auto& [part, error] : errors) {
    if (!refusals.completion(part)) end_without_lease(*beside.parts[part].sequence, error);
  }
  end_refused(beside, refusals);
  std::erase_if(plan.parts,
                [this](const PlannedRows& part) { return !scheduler_.is_running(part.sequence); });
  return {};
}

/// Returns at most kMaxStepSequences: no sequence is admitted while transfers are pending, and a
/// sequence being swapped out was running in the plan that listed its transfer.
StepPlan Engine::sequences_for_transfers() const {
  StepPlan plan;
  for (const auto& sequence : scheduler_.running())
    plan.parts.push_back({.sequence = sequence.get()});
  for (const SwapTransfer& transfer : scheduler_.transfers()) {
    const auto known = std::ranges::find(plan.parts, transfer.sequence, &PlannedRows::sequence);
    if (known == plan.parts.end()) plan.parts.push_back({.sequence = transfer.sequence});
  }
  return plan;
}

/// Unfinished transfers of a sequence that is no longer live stay in the list until the sequence
/// ends.
Engine::PartErrors Engine::run_transfers(const StepPlan& beside, const GateSet& gates) {
  PartErrors errors;
  const std::vector<SwapTransfer> transfers = scheduler_.transfers();
  for (const SwapTransfer& transfer : transfers) {
    const auto found = std::ranges::find(beside.parts, transfer.sequence, &PlannedRows::sequence);
    const auto part = static_cast<std::uint32_t>(found - beside.parts.begin());
    const Result<std::vector<LeasedCopy>> copies = addresses_of(transfer);
    if (!copies) {
      errors.emplace(part, copies.error());
      continue;
    }
    const TimePoint began = deps_.clock->now();
    const LaunchStatus status = deps_.backend->copy_blocks(
        {.gates = &gates, .rows = {}},
        {.sequence = part, .copies = *copies, .block_size_bytes = memory_.block_size_bytes()});
    const bool is_made = (status.live >> part & 1) != 0;
    if (is_made) scheduler_.transfer_done(*transfer.sequence, deps_.clock->now() - began);
  }
  return errors;
}

/// Errors: LeaseFenced for a block that is not memory of the sequence's lease.
Result<std::vector<LeasedCopy>> Engine::addresses_of(const SwapTransfer& transfer) const {
  const LeaseId lease = transfer.sequence->request.lease;
  std::vector<LeasedCopy> copies;
  for (const BlockCopy& copy : transfer.copies) {
    const Leased<std::byte> to = TRY(address_of(lease, copy.to));
    const Leased<const std::byte> from = TRY(address_of(lease, copy.from));
    copies.push_back({.to = to, .from = from});
  }
  return copies;
}

// ---------------------------------------------------------------------------------------- spill

Result<Leased<std::byte>> Engine::address_of(LeaseId lease, BlockId block) const {
  if (block.extent == kStagingExtent) return spill_store_->staging(block.index, lease);
  return memory_.address(lease, block);
}

void Engine::lend_spill(SpillStore& store, SpillQueue& queue, SpillLimits limits) {
  spill_store_ = &store;
  spill_queue_ = &queue;
  limits.slots = store.slot_count();
  limits.buffers = store.buffer_count();
  scheduler_.lend_spill(limits);
}

void Engine::take_spill_answers() {
  if (spill_queue_ == nullptr) return;
  scheduler_.spill_answered(spill_queue_->take_answers(), deps_.clock->now());
  post_spill_jobs();
}

/// A job whose seal cannot be created is posted without one, and its answer is an error. The end of
/// a stream is not posted when the lease's seal is already discarded.
void Engine::post_spill_jobs() {
  for (SpillJob& job : scheduler_.take_spill_jobs()) {
    const bool needs_key = job.kind == SpillJob::Kind::Write || job.kind == SpillJob::Kind::Read;
    if (needs_key) job.seal = seals_.of(job.lease).value_or(nullptr);
    if (job.kind == SpillJob::Kind::End) job.seal = seals_.find(job.lease);
    if (job.kind == SpillJob::Kind::End && job.seal == nullptr) continue;
    spill_queue_->post(std::move(job));
  }
}

}  // namespace leasehold
