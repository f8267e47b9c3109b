#include "worker/engine/request_mover.hpp"

#include <fmt/format.h>

#include <optional>

#include "worker/engine/check_device.hpp"
#include "worker/engine/gate_numbers.hpp"
#include "worker/engine/step_batch.hpp"

namespace leasehold {
namespace {

/// Records why a copy was refused. It ends no request: `Engine::end_stopped`, which runs before the
/// next step, finds what ended the old lease or stopped the request.
class MoveRefusal final : public RefusalListener {
 public:
  explicit MoveRefusal(RevocationObserver& observer) : observer_(&observer) {}

  void refused(const GateRefusal& refusal) noexcept override { seen_ = refusal; }
  void refusing_unit_ended() noexcept override { observer_->refusing_unit_ended(); }

  /// Precondition: the launches are over.
  const std::optional<GateRefusal>& seen() const { return seen_; }

 private:
  RevocationObserver* observer_;
  std::optional<GateRefusal> seen_;  // written by one thread: a gate set reports a sequence once
};

std::unexpected<Error> not_copied(const std::optional<GateRefusal>& refusal, LeaseId to) {
  if (!refusal || refusal->local != LocalStop::None)
    return fail(Errc::Draining,
                "the request is being stopped, and is not moved; submit it under the new lease");
  const LeaseId lease{refusal->slot, refusal->granted.generation()};
  return fail(
      Errc::LeaseRevoked,
      fmt::format(
          "lease {} was revoked ({}) during the copy, and the request was not moved; "
          "{}",
          to_string(lease), name(refusal->seen.reason()),
          lease == to ? "it runs on under its own lease" : "submit it under the new lease"));
}

}  // namespace

Result<std::uint32_t> RequestMover::move(const RequestId& engine_request_id, LeaseId to,
                                         TimePoint called_at) {
  TRY(check_device(*deps_.backend));
  TRY(deps_.leases->check_usable(to));
  const TimePoint began = deps_.clock->now();
  const auto tenancy = deps_.scheduler->tenancies().find(to);  // an unknown lease is refused below
  if (tenancy != deps_.scheduler->tenancies().end())
    TRY(pauses_.check(tenancy->second.tenant, began));
  deps_.records->clear_released();  // the copies may reuse their blocks
  Move move = TRY(deps_.scheduler->begin_move(engine_request_id, to));
  const auto blocks = static_cast<std::uint32_t>(move.copies.size());
  const Result<void> copied = copy_blocks(move);
  const TimePoint ended = deps_.clock->now();
  pauses_.note(move.sequence->request.tenant, began, ended);
  if (!copied) {
    deps_.scheduler->moves().drop(std::move(move));
    return std::unexpected(copied.error());
  }
  deps_.scheduler->moves().finish(std::move(move), ended - called_at);
  // From now on the new lease's deadline stops the request.
  deps_.running_requests->update(stop_slots_of(deps_.scheduler->running().all()));
  return blocks;
}

Result<void> RequestMover::copy_blocks(const Move& move) {
  const std::vector<LeasedCopy> copies = TRY(addresses_of(move));
  std::vector<LeaseDependency> leases = TRY(dependencies_of(*move.sequence, *deps_.table));
  leases.push_back(TRY(deps_.table->dependency(move.to)));
  MoveRefusal refusal(*deps_.observer);
  GateSet gates(next_gate_number(), deps_.running_requests->stops(), refusal);
  gates.add_sequence(leases, move.sequence->stop_slot);
  const LaunchStatus status = deps_.backend->copy_blocks(
      {.gates = &gates, .rows = {}},
      {.sequence = 0, .copies = copies, .block_size_bytes = deps_.memory->block_size_bytes()});
  TRY(check_device(*deps_.backend));
  if ((status.live & 1) == 0) return not_copied(refusal.seen(), move.to);
  return {};
}

/// Errors: LeaseFenced for a block that is not memory of its lease.
Result<std::vector<LeasedCopy>> RequestMover::addresses_of(const Move& move) const {
  std::vector<LeasedCopy> copies;
  for (const BlockCopy& copy : move.copies) {
    const Leased<std::byte> to = TRY(deps_.memory->address(move.to, copy.to));
    const Leased<const std::byte> from =
        TRY(deps_.memory->address(move.sequence->request.lease, copy.from));
    copies.push_back({.to = to, .from = from});
  }
  return copies;
}

}  // namespace leasehold
