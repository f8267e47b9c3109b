#include "tools/verify/lease_accounts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace leasehold::verify {
namespace {

using wire::ErasureState;

std::unexpected<Error> contradict(std::string why) {
  return fail(Errc::FileCorrupt, std::move(why));
}

template <class Record>
Result<Record> parse(const wire::Json& json) {
  auto record = Record::from_json(json);
  if (record) return record;
  return contradict("is not as a broker writes it: " + record.error().detail);
}

/// The state that the account's memory has once its lease has ended.
ErasureState state_of(const Memory& memory) {
  if (amount_of(memory, Fate::Open).extents > 0) return ErasureState::Open;
  if (amount_of(memory, Fate::Quarantined).extents > 0) return ErasureState::Quarantined;
  if (amount_of(memory, Fate::Held).extents > 0) return ErasureState::Held;
  return ErasureState::Erased;
}

Result<void> move_memory(LeaseAccount& lease, const wire::MemorySettled& settled) {
  const Amount amount{.extents = settled.extents, .bytes = settled.bytes};
  const bool was_there = lease.memory[{settled.pool, settled.from}].subtract(amount);
  if (lease.is_whole && !was_there) {
    return contradict(fmt::format("settles {} extents of {} as {}, more than were {}",
                                  amount.extents, name(settled.pool), name(settled.to),
                                  name(settled.from)));
  }
  lease.memory[{settled.pool, settled.to}] += amount;
  return {};
}

/// Compares what the record says about the whole lease with its account.
Result<void> check_state(const LeaseAccount& lease, const wire::LeaseErasedRecord& record) {
  const std::uint64_t open = amount_of(lease.memory, Fate::Open).extents;
  if (open != record.open_extents) {
    return contradict(fmt::format("says that {} extents are open, and its grants and ends leave {}",
                                  record.open_extents, open));
  }
  // A live lease is open even while it has no memory.
  const ErasureState state = state_of(lease.memory);
  if (record.state == state || record.state == ErasureState::Open) return {};
  return contradict(fmt::format("says that its lease is {}, and its memory is {}",
                                name(record.state), name(state)));
}

}  // namespace

Amount& Amount::operator+=(const Amount& other) {
  extents += other.extents;
  bytes += other.bytes;
  return *this;
}

bool Amount::subtract(const Amount& other) {
  if (extents < other.extents || bytes < other.bytes) return false;
  extents -= other.extents;
  bytes -= other.bytes;
  return true;
}

Amount amount_of(const Memory& memory, Fate fate) {
  Amount sum;
  for (const auto& [key, amount] : memory)
    if (key.second == fate) sum += amount;
  return sum;
}

Result<void> LeaseAccounts::add(const wire::Json& record) {
  const wire::Json kind = record.value("record", wire::Json());
  if (kind == "lease_granted") return grant(TRY(parse<wire::LeaseGrantedRecord>(record)));
  if (kind == "lease_erased") return settle(TRY(parse<wire::LeaseErasedRecord>(record)));
  return contradict("is not a record about a lease");
}

Result<void> LeaseAccounts::grant(const wire::LeaseGrantedRecord& record) {
  const auto [at, is_new] = leases_.try_emplace(record.lease);
  LeaseAccount& lease = at->second;
  if (record.opens && !is_new)
    return contradict(fmt::format("opens lease {} again", to_string(record.lease)));
  if (record.opens) {
    lease.is_whole = true;
    lease.granted_unix_ms = record.granted_unix_ms;
  }
  if (lease.state != ErasureState::Open)
    return contradict(
        fmt::format("lends memory to lease {} after its end", to_string(record.lease)));
  lease.worker = record.worker;
  for (const wire::MemoryGranted& granted : record.granted) {
    lease.memory[{granted.pool, Fate::Open}] += {granted.extents, granted.bytes};
    if (granted.adopted_from)
      adopted_bytes_[{*granted.adopted_from, record.lease}] -= granted.bytes;
  }
  return {};
}

Result<void> LeaseAccounts::settle(const wire::LeaseErasedRecord& record) {
  LeaseAccount& lease = leases_[record.lease];
  if (!record.worker.empty()) lease.worker = record.worker;
  if (!record.reason.empty()) lease.reason = record.reason;
  if (!record.proof.empty()) lease.proof = record.proof;
  if (record.revoked_unix_ms != 0) lease.revoked_unix_ms = record.revoked_unix_ms;
  lease.spill_key_destroyed = lease.spill_key_destroyed || record.spill_key_destroyed;
  lease.state = record.state;
  for (const wire::MemorySettled& settled : record.settled) {
    TRY(move_memory(lease, settled));
    if (settled.to != Fate::Adopted) continue;
    if (lease.is_whole) adopted_bytes_[{record.lease, *settled.adopted_by}] += settled.bytes;
  }
  if (!lease.is_whole) return {};
  return check_state(lease, record);
}

Result<void> LeaseAccounts::finish() const {
  for (const auto& [leases, bytes] : adopted_bytes_) {
    const auto from = leases_.find(leases.first);
    if (bytes == 0 || from == leases_.end() || !from->second.is_whole) continue;
    return contradict(fmt::format(
        "lease {} and lease {} do not agree on the memory that one handed to "
        "the other; they differ by {} bytes",
        to_string(leases.first), to_string(leases.second), static_cast<std::int64_t>(bytes)));
  }
  return {};
}

}  // namespace leasehold::verify
