/// Refuses the tokens of leases that have ended. Tokens themselves do not expire.
#pragma once

#include <fmt/format.h>

#include "ipc/table/table_reader.hpp"

namespace leasehold {

/// The lease's word, or Revoked once its deadline is over, because a disconnected broker cannot
/// revoke it in the table.
inline LeaseWord word_at(const TableReader& table, LeaseId lease, TimePoint now) {
  const LeaseWord word = table.word_of(lease);
  const TimePoint deadline = table.deadline(lease);
  const bool is_over = deadline.boottime_ns != 0 && deadline <= now;
  if (word.state() != LeaseState::Live || !is_over) return word;
  return LeaseWord::make(lease.generation, LeaseState::Revoked, RevokeReason::TtlExpired);
}

inline bool is_live(const TableReader& table, LeaseId lease, TimePoint now) {
  return word_at(table, lease, now).state() == LeaseState::Live;
}

/// Errors: LeaseRevoked, LeaseFenced.
inline Result<void> check_live(const TableReader& table, LeaseId lease, TimePoint now) {
  const LeaseWord word = word_at(table, lease, now);
  if (word.state() == LeaseState::Live) return {};
  if (word.state() == LeaseState::Revoked) {
    return fail(Errc::LeaseRevoked, fmt::format("lease {} was revoked ({}); acquire a new lease",
                                                to_string(lease), name(word.reason())));
  }
  return fail(Errc::LeaseFenced,
              fmt::format("lease {} is fenced; acquire a new lease", to_string(lease)));
}

}  // namespace leasehold
