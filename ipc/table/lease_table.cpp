#include "ipc/table/lease_table.hpp"

#include "common/expects.hpp"
#include "ipc/launch_gate.hpp"

namespace leasehold {

Result<LeaseTable> LeaseTable::create(std::uint32_t slot_count) {
  const std::size_t size_bytes = table_size_bytes(slot_count);
  MemoryObject object =
      TRY(MemoryObject::create({.name = "leasehold-table", .size_bytes = size_bytes}));
  Mapping mapping = TRY(Mapping::map(object.fd(), size_bytes, MapAccess::ReadWrite));
  TRY(mapping.prefault(MapAccess::ReadWrite));
  return LeaseTable(std::move(object), std::move(mapping), slot_count);
}

LeaseTable::LeaseTable(MemoryObject object, Mapping mapping, std::uint32_t slot_count)
    : object_(std::move(object)), mapping_(std::move(mapping)), slot_count_(slot_count) {
  TableHeader& header = view().header();
  header.magic = kTableMagic;
  header.size_bytes = object_.size_bytes();
  header.slot_count = slot_count;
  header.worker_count = kMaxWorkers;
  for (std::uint32_t worker = 0; worker < kMaxWorkers; ++worker) {
    view().counter(worker).revocations.store(1, std::memory_order_relaxed);
  }
  // Last: a reader that sees the version sees everything above. Pairs with TableReader::attach.
  header.abi_version.store(kSegmentAbiVersion, std::memory_order_release);
}

void LeaseTable::grant(LeaseId lease, TimePoint deadline) {
  LeaseSlot& slot = view().slot(lease.slot);
  expects(lease.slot < slot_count_ && lease.generation > word(lease.slot).generation(),
          "a grant names a slot of the table, and generations only grow");
  const LeaseState before = word(lease.slot).state();
  expects(before == LeaseState::Closed || before == LeaseState::Fenced,
          "a slot is granted again only after its fence");
  slot.deadline_boottime_ns.store(deadline.boottime_ns, std::memory_order_relaxed);
  slot.drain_deadline_boottime_ns.store(0, std::memory_order_relaxed);
  slot.flipped_boottime_ns.store(0, std::memory_order_relaxed);
  slot.word.store(LeaseWord::make(lease.generation, LeaseState::Live).bits,
                  std::memory_order_seq_cst);
}

void LeaseTable::take_away(WorkerId worker, std::span<const Flip> flips, TimePoint now) {
  const auto lowering_of = [&](const Flip& flip) -> RevokeCore<>::Lowering {
    LeaseSlot& slot = view().slot(flip.lease.slot);
    const LeaseWord before = word(flip.lease.slot);
    expects(before.generation() == flip.lease.generation && before.state() < flip.to,
            "a word only moves forward within its generation");
    if (before.state() == LeaseState::Live) {
      slot.flipped_boottime_ns.store(now.boottime_ns, std::memory_order_relaxed);
    }
    return {&slot.word, LeaseWord::make(flip.lease.generation, flip.to, flip.reason).bits};
  };
  RevokeCore<>::take_away(flips, lowering_of,
                          view().counter(static_cast<std::uint32_t>(worker.value)).revocations);
}

void LeaseTable::set_deadline(LeaseId lease, TimePoint deadline) {
  view()
      .slot(lease.slot)
      .deadline_boottime_ns.store(deadline.boottime_ns, std::memory_order_relaxed);
}

void LeaseTable::set_drain_deadline(LeaseId lease, TimePoint deadline) {
  view()
      .slot(lease.slot)
      .drain_deadline_boottime_ns.store(deadline.boottime_ns, std::memory_order_relaxed);
}

LeaseWord LeaseTable::word(std::uint32_t slot) const {
  return {view().slot(slot).word.load(std::memory_order_seq_cst)};
}

std::uint64_t LeaseTable::revocations(WorkerId worker) const {
  return view()
      .counter(static_cast<std::uint32_t>(worker.value))
      .revocations.load(std::memory_order_seq_cst);
}

}  // namespace leasehold
