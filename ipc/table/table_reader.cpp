#include "ipc/table/table_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include "common/expects.hpp"
#include "ipc/region/memory_object.hpp"
#include "ipc/table/lease_table.hpp"

namespace leasehold {
namespace {

Result<void> check_read_only(const UniqueFd& fd) {
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) != O_RDONLY) {
    return fail(Errc::UntrustedSegment, "the lease table must come as a read-only descriptor");
  }
  return {};
}

Result<std::uint32_t> check_table_header(const TableHeader& header, std::size_t size_bytes) {
  // acquire: pairs with the broker's release store, which is its last store to a new table.
  const std::uint64_t version = header.abi_version.load(std::memory_order_acquire);
  if (version == 0) {
    return fail(Errc::ConnectionLost, "the lease table is not initialised yet; attach again");
  }
  if (header.magic != kTableMagic || version != kSegmentAbiVersion) {
    return fail(Errc::UntrustedSegment,
                fmt::format("lease table of version {}, this worker reads version {}", version,
                            kSegmentAbiVersion));
  }
  const std::uint32_t slots = header.slot_count;
  if (header.size_bytes != size_bytes || header.worker_count != kMaxWorkers ||
      table_size_bytes(slots) != size_bytes) {
    return fail(Errc::UntrustedSegment,
                fmt::format("lease table says {} slots, its size is {} bytes", slots, size_bytes));
  }
  return slots;
}

}  // namespace

Result<TableReader> TableReader::attach(UniqueFd fd) {
  TRY(check_read_only(fd));
  const MemoryObject object = TRY(MemoryObject::adopt(std::move(fd)));
  if (object.size_bytes() < table_size_bytes(0)) {
    return fail(Errc::UntrustedSegment,
                fmt::format("a lease table of {} bytes has no header", object.size_bytes()));
  }
  Mapping mapping = TRY(Mapping::map(object.fd(), object.size_bytes(), MapAccess::ReadOnly));
  const TableView<const std::byte> view{mapping.data()};
  const std::uint32_t slots = TRY(check_table_header(view.header(), object.size_bytes()));
  TRY(mapping.prefault(MapAccess::ReadOnly));
  (void)mapping.lock();  // best effort: an unlocked poll may fault once, but is never wrong
  return TableReader(std::move(mapping), slots);
}

TableReader TableReader::in_process(const LeaseTable& table) {
  return TableReader(table.mapping_.borrowed(), table.slot_count_);
}

const std::atomic<std::uint64_t>& TableReader::revocations(WorkerId worker) const {
  expects(worker.value < kMaxWorkers, "worker index within the table");
  return view().counter(static_cast<std::uint32_t>(worker.value)).revocations;
}

Result<LeaseDependency> TableReader::dependency(LeaseId lease) const {
  if (lease.slot >= slot_count_) {
    return fail(Errc::UnknownLease, fmt::format("lease {} lies beyond the table's {} slots",
                                                to_string(lease), slot_count_));
  }
  return LeaseDependency{.slot = lease.slot,
                         .granted = LeaseWord::make(lease.generation, LeaseState::Live),
                         .word = &view().slot(lease.slot).word};
}

LeaseWord TableReader::word_of(LeaseId lease) const {
  if (lease.slot >= slot_count_) return LeaseWord{};
  const LeaseWord word{view().slot(lease.slot).word.load(std::memory_order_seq_cst)};
  if (word.generation() == lease.generation) return word;
  return LeaseWord::make(lease.generation, LeaseState::Fenced);
}

TimePoint TableReader::time_of(LeaseId lease, std::atomic<std::int64_t> LeaseSlot::* field) const {
  if (lease.slot >= slot_count_) return TimePoint{};
  return {(view().slot(lease.slot).*field).load(std::memory_order_relaxed)};
}

TimePoint TableReader::deadline(LeaseId lease) const {
  return time_of(lease, &LeaseSlot::deadline_boottime_ns);
}

TimePoint TableReader::drain_deadline(LeaseId lease) const {
  return time_of(lease, &LeaseSlot::drain_deadline_boottime_ns);
}

TimePoint TableReader::word_stored_at(LeaseId lease) const {
  return time_of(lease, &LeaseSlot::word_stored_boottime_ns);
}

std::optional<Duration> TableReader::since_word_stored(LeaseId lease, TimePoint now) const {
  if (lease.slot >= slot_count_) return std::nullopt;
  const LeaseSlot& slot = view().slot(lease.slot);
  // acquire: pairs with the release in LeaseTable::begin_change. A reader that sees the time of a
  // later lease of the slot also sees that lease's word, so an unchanged generation shows that the
  // time is this lease's.
  const TimePoint stored_at{slot.word_stored_boottime_ns.load(std::memory_order_acquire)};
  if (stored_at == TimePoint{}) return std::nullopt;
  const LeaseWord word{slot.word.load(std::memory_order_seq_cst)};
  if (word.generation() != lease.generation) return std::nullopt;
  return now - stored_at;
}

}  // namespace leasehold
