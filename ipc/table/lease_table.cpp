#include "ipc/table/lease_table.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "common/expects.hpp"

namespace leasehold {
namespace {

Result<std::uint32_t> check_header(const TableHeader& header, std::size_t size_bytes) {
  const std::uint64_t version = header.abi_version.load(std::memory_order_acquire);
  const bool fits = header.size_bytes == size_bytes && header.worker_count == kMaxWorkers &&
                    table_size_bytes(header.slot_count) == size_bytes;
  if (version == kSegmentAbiVersion && header.magic == kTableMagic && fits) {
    return header.slot_count;
  }
  return fail(
      Errc::UntrustedSegment,
      fmt::format("the kept lease table has version {} and {} slots in {} bytes; this broker "
                  "writes version {}",
                  version, header.slot_count, size_bytes, kSegmentAbiVersion));
}

}  // namespace

Result<LeaseTable> LeaseTable::create(std::uint32_t slot_count) {
  const std::size_t size_bytes = table_size_bytes(slot_count);
  MemoryObject object =
      TRY(MemoryObject::create({.name = "leasehold-table", .size_bytes = size_bytes}));
  Mapping mapping = TRY(Mapping::map(object.fd(), size_bytes, MapAccess::ReadWrite));
  TRY(mapping.prefault(MapAccess::ReadWrite));
  LeaseTable table(std::move(object), std::move(mapping), slot_count);
  table.initialise();
  return table;
}

LeaseTable::LeaseTable(MemoryObject object, Mapping mapping, std::uint32_t slot_count)
    : object_(std::move(object)),
      mapping_(std::move(mapping)),
      slot_count_(slot_count),
      shadow_(object_.size_bytes() / sizeof(CacheLine)) {}

Result<LeaseTable> LeaseTable::adopt(UniqueFd fd) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) != O_RDWR) {
    return fail(Errc::UntrustedSegment, "the kept lease table cannot be written");
  }
  MemoryObject object = TRY(MemoryObject::adopt(std::move(fd)));
  if (object.size_bytes() < table_size_bytes(0)) {
    return fail(Errc::UntrustedSegment,
                fmt::format("a lease table of {} bytes has no header", object.size_bytes()));
  }
  Mapping mapping = TRY(Mapping::map(object.fd(), object.size_bytes(), MapAccess::ReadWrite));
  const TableView<const std::byte> view{mapping.data()};
  const std::uint32_t slots = TRY(check_header(view.header(), object.size_bytes()));
  TRY(mapping.prefault(MapAccess::ReadWrite));
  LeaseTable table(std::move(object), std::move(mapping), slots);
  table.copy_to_shadow();
  // The previous broker may have died after a word and before the counter. Then the worker would
  // keep using the old word, and quiet would prove nothing.
  for (std::uint32_t worker = 0; worker < kMaxWorkers; ++worker) table.increment_counter(worker);
  return table;
}

/// From here on the broker decides by the shadow.
void LeaseTable::copy_to_shadow() {
  std::memcpy(shadow_.data(), mapping_.data(), object_.size_bytes());
  for (std::uint32_t slot = 0; slot < slot_count_; ++slot) {
    if (shadow_word(slot).bits != 0) used_slots_ = slot + 1;
  }
}

void LeaseTable::initialise() {
  TableHeader& header = view().header();
  header.magic = kTableMagic;
  header.size_bytes = object_.size_bytes();
  header.slot_count = slot_count_;
  header.worker_count = kMaxWorkers;
  for (std::uint32_t worker = 0; worker < kMaxWorkers; ++worker) {
    view().counter(worker).revocations.store(1, std::memory_order_relaxed);
  }
  // Stored last: a reader that sees the version sees everything above. Pairs with
  // TableReader::attach.
  header.abi_version.store(kSegmentAbiVersion, std::memory_order_release);
  copy_to_shadow();
}

void LeaseTable::grant(LeaseId lease, TimePoint deadline) {
  expects(lease.slot < slot_count_ && lease.generation > shadow_word(lease.slot).generation(),
          "a grant names a slot of the table, and generations only grow");
  expects(may_become(shadow_word(lease.slot).state(), LeaseState::Live),
          "a slot is granted again only after its fence");
  if (!slot_matches_shadow(lease.slot)) tampered_.push_back({TablePart::FreeSlot, lease.slot});
  used_slots_ = std::max(used_slots_, lease.slot + 1);
  for (const TableView<std::byte> table : {shadow(), view()}) {
    LeaseSlot& slot = table.slot(lease.slot);
    slot.deadline_boottime_ns.store(deadline.boottime_ns, std::memory_order_relaxed);
    slot.drain_deadline_boottime_ns.store(0, std::memory_order_relaxed);
    slot.word_stored_boottime_ns.store(0, std::memory_order_relaxed);
    slot.word.store(LeaseWord::make(lease.generation, LeaseState::Live).bits,
                    std::memory_order_seq_cst);
  }
}

LeaseWord LeaseTable::begin_change(const LeaseChange& change, TimePoint now) {
  const LeaseWord before = shadow_word(change.lease.slot);
  expects(before.generation() == change.lease.generation && before.state() < change.to,
          "a word only moves forward within its generation");
  check_slot(change.lease.slot);
  const LeaseWord after = LeaseWord::make(change.lease.generation, change.to, change.reason);
  shadow().slot(change.lease.slot).word.store(after.bits, std::memory_order_relaxed);
  for (const TableView<std::byte> table : {shadow(), view()}) {
    if (before.state() != LeaseState::Live) break;
    // release: pairs with TableReader::since_word_stored.
    table.slot(change.lease.slot)
        .word_stored_boottime_ns.store(now.boottime_ns, std::memory_order_release);
  }
  return after;
}

void LeaseTable::restore(LeaseId lease, LeaseState state, RevokeReason reason) {
  expects(lease.slot < slot_count_ && lease.generation >= shadow_word(lease.slot).generation(),
          "a word is never restored to an older generation");
  used_slots_ = std::max(used_slots_, lease.slot + 1);
  for (const TableView<std::byte> table : {shadow(), view()}) {
    table.slot(lease.slot)
        .word.store(LeaseWord::make(lease.generation, state, reason).bits,
                    std::memory_order_seq_cst);
  }
}

void LeaseTable::set_deadline(LeaseId lease, TimePoint deadline) {
  check_slot(lease.slot);
  for (const TableView<std::byte> table : {shadow(), view()}) {
    table.slot(lease.slot)
        .deadline_boottime_ns.store(deadline.boottime_ns, std::memory_order_relaxed);
  }
}

void LeaseTable::set_drain_deadline(LeaseId lease, TimePoint deadline) {
  check_slot(lease.slot);
  for (const TableView<std::byte> table : {shadow(), view()}) {
    table.slot(lease.slot)
        .drain_deadline_boottime_ns.store(deadline.boottime_ns, std::memory_order_relaxed);
  }
}

// ---------------------------------------------------------------- the shadow

namespace {

std::array<std::uint64_t, 4> contents(const LeaseSlot& slot) {
  const auto bits = [](const std::atomic<std::int64_t>& field) {
    return static_cast<std::uint64_t>(field.load(std::memory_order_relaxed));
  };
  return {slot.word.load(std::memory_order_seq_cst), bits(slot.deadline_boottime_ns),
          bits(slot.drain_deadline_boottime_ns), bits(slot.word_stored_boottime_ns)};
}

void copy(const LeaseSlot& from, LeaseSlot& to) {
  const auto [word, deadline, drain_deadline, stored_at] = contents(from);
  to.deadline_boottime_ns.store(static_cast<std::int64_t>(deadline), std::memory_order_relaxed);
  to.drain_deadline_boottime_ns.store(static_cast<std::int64_t>(drain_deadline),
                                      std::memory_order_relaxed);
  to.word_stored_boottime_ns.store(static_cast<std::int64_t>(stored_at), std::memory_order_relaxed);
  to.word.store(word, std::memory_order_seq_cst);
}

}  // namespace

bool LeaseTable::slot_matches_shadow(std::uint32_t slot) {
  return contents(view().slot(slot)) == contents(shadow().slot(slot));
}

bool LeaseTable::counter_matches_shadow(std::uint32_t worker) {
  return view().counter(worker).revocations.load(std::memory_order_seq_cst) ==
         shadow().counter(worker).revocations.load(std::memory_order_relaxed);
}

/// Records a slot that another process changed. Call before a store, which would hide the change.
void LeaseTable::check_slot(std::uint32_t slot) {
  if (!slot_matches_shadow(slot)) tampered_.push_back({TablePart::Slot, slot});
}

void LeaseTable::check_counter(std::uint32_t worker) {
  if (!counter_matches_shadow(worker)) tampered_.push_back({TablePart::Counter, worker});
}

/// Counts from the shadow, not from the table. There is one writer, so a store is enough.
void LeaseTable::increment_counter(std::uint32_t worker) {
  std::atomic<std::uint64_t>& count = shadow().counter(worker).revocations;
  const std::uint64_t next = count.load(std::memory_order_relaxed) + 1;
  count.store(next, std::memory_order_relaxed);
  view().counter(worker).revocations.store(next, std::memory_order_seq_cst);
}

void LeaseTable::repair_header(std::vector<TableEntry>& changed) {
  if (std::memcmp(mapping_.data(), shadow_.data(), sizeof(TableHeader)) == 0) return;
  std::memcpy(mapping_.data(), shadow_.data(), sizeof(TableHeader));
  changed.push_back({TablePart::Header, 0});
}

std::vector<TableEntry> LeaseTable::repair() {
  std::vector<TableEntry> changed = std::exchange(tampered_, {});
  repair_header(changed);
  for (std::uint32_t slot = 0; slot < used_slots_; ++slot) {
    if (slot_matches_shadow(slot)) continue;
    copy(shadow().slot(slot), view().slot(slot));
    changed.push_back({TablePart::Slot, slot});
  }
  for (std::uint32_t worker = 0; worker < kMaxWorkers; ++worker) {
    if (!counter_matches_shadow(worker)) changed.push_back({TablePart::Counter, worker});
  }
  if (changed.empty()) return changed;
  for (std::uint32_t worker = 0; worker < kMaxWorkers; ++worker) increment_counter(worker);
  return changed;
}

LeaseWord LeaseTable::word(std::uint32_t slot) const {
  return {view().slot(slot).word.load(std::memory_order_seq_cst)};
}

TimePoint LeaseTable::deadline(std::uint32_t slot) const {
  return {view().slot(slot).deadline_boottime_ns.load(std::memory_order_relaxed)};
}

TimePoint LeaseTable::drain_deadline(std::uint32_t slot) const {
  return {view().slot(slot).drain_deadline_boottime_ns.load(std::memory_order_relaxed)};
}

TimePoint LeaseTable::word_stored_at(std::uint32_t slot) const {
  return {view().slot(slot).word_stored_boottime_ns.load(std::memory_order_relaxed)};
}

std::uint64_t LeaseTable::revocations(WorkerId worker) const {
  return view()
      .counter(static_cast<std::uint32_t>(worker.value))
      .revocations.load(std::memory_order_seq_cst);
}

}  // namespace leasehold
