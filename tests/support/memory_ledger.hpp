/// Checks the audit records about leased memory against the journal's other rows, as an auditor
/// with a copy of the journal would: what was granted is erased, or is on disk as an extent of its
/// lease. Fed with the rows that were written, over any number of brokers.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "broker/books/rows.hpp"

namespace leasehold::testing {

class MemoryLedger {
 public:
  /// Notes the row if it is an audit record about memory.
  void add(const journal::Row& row) {
    std::string wrong;
    if (const auto* lent = std::get_if<journal::LeaseGrantedRow>(&row)) wrong = note(*lent);
    if (const auto* settled = std::get_if<journal::LeaseErasedRow>(&row)) wrong = note(*settled);
    if (wrong_.empty()) wrong_ = std::move(wrong);
  }

  /// The first record that does not fit the earlier ones, or what differs between the accounts and
  /// the rows on disk; empty if nothing does. Call it when a transaction is complete.
  std::string mismatch(const journal::Image& image) const {
    if (!wrong_.empty()) return wrong_;
    for (const auto& [id, account] : accounts_) {
      if (account.extents != extents_of(image, id))
        return fmt::format("the records of lease {} do not account for its extents", to_string(id));
      if (image.leases.contains(id) != (account.state == wire::ErasureState::Open))
        return fmt::format("the records of lease {} say {}", to_string(id), name(account.state));
    }
    for (const auto& [id, row] : image.extents)
      if (!accounts_.contains(row.lease)) return fmt::format("no record of extent {}", id.value);
    const std::uint64_t counted = erased + accounts_.size();
    return granted == counted ? "" : "leases granted are not those erased and open";
  }

  std::uint64_t granted = 0;  ///< Leases.
  std::uint64_t erased = 0;
  std::map<wire::MemoryFate, std::uint64_t> extents;  ///< By what became of them.

 private:
  /// Open, held and quarantined extents.
  using Extents = std::array<std::uint64_t, 3>;
  struct Account {
    TenantId tenant;
    Extents extents{};
    wire::ErasureState state = wire::ErasureState::Open;
  };

  static std::size_t index_of(wire::MemoryFate fate) { return static_cast<std::size_t>(fate); }

  static Extents extents_of(const journal::Image& image, LeaseId lease) {
    Extents found{};
    for (const auto& [id, row] : image.extents) {
      if (row.lease != lease) continue;
      auto fate = wire::MemoryFate::Open;
      if (row.state == ExtentState::Held) fate = wire::MemoryFate::Held;
      if (row.state == ExtentState::Quarantined) fate = wire::MemoryFate::Quarantined;
      ++found[index_of(fate)];
    }
    return found;
  }

  static std::string wrong(LeaseId lease, std::string_view why) {
    return fmt::format("a record of lease {} {}", to_string(lease), why);
  }

  std::string note(const journal::LeaseGrantedRow& row) {
    const wire::LeaseGrantedRecord& record = row.record;
    if (record.opens == accounts_.contains(record.lease))
      return wrong(record.lease, "opens it twice, or not at all");
    if (record.opens) ++granted;
    Account& account = accounts_[record.lease];
    account.tenant = {record.tenant};
    for (const wire::MemoryGranted& each : record.granted)
      account.extents[index_of(wire::MemoryFate::Open)] += each.extents;
    return {};
  }

  std::string note(const journal::LeaseErasedRow& row) {
    const wire::LeaseErasedRecord& record = row.record;
    const auto found = accounts_.find(record.lease);
    if (found == accounts_.end()) return wrong(record.lease, "settles memory that was not granted");
    Account& account = found->second;
    if (account.tenant.value != record.tenant) return wrong(record.lease, "names another tenant");
    if (account.state != row.before) return wrong(record.lease, "begins in another state");
    for (const wire::MemorySettled& each : record.settled) {
      std::uint64_t& left = account.extents[index_of(each.from)];
      if (left < each.extents) return wrong(record.lease, "settles more than there was");
      left -= each.extents;
      if (!is_final(each.to)) account.extents[index_of(each.to)] += each.extents;
      extents[each.to] += each.extents;
    }
    if (account.extents[0] != record.open_extents)
      return wrong(record.lease, "counts other open extents");
    account.state = record.state;
    if (record.state != state_of(account)) return wrong(record.lease, "ends in another state");
    if (record.state != wire::ErasureState::Erased) return {};
    accounts_.erase(found);
    ++erased;
    return {};
  }

  /// An Open lease may have no memory left, because its worker returned all of it.
  static wire::ErasureState state_of(const Account& account) {
    if (account.state == wire::ErasureState::Open) return account.state;
    const Extents& left = account.extents;
    if (left[0] != 0) return wire::ErasureState::Open;
    if (left[index_of(wire::MemoryFate::Quarantined)] != 0) return wire::ErasureState::Quarantined;
    return left[index_of(wire::MemoryFate::Held)] != 0 ? wire::ErasureState::Held
                                                       : wire::ErasureState::Erased;
  }

  std::map<LeaseId, Account> accounts_;  ///< Of leases that are not erased.
  std::string wrong_;
};

}  // namespace leasehold::testing
