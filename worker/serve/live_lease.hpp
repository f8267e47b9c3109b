/// Refuses the tokens of leases that have ended. Tokens themselves do not expire.
#pragma once

#include <fmt/format.h>

#include "ipc/table/table_reader.hpp"

namespace leasehold {

inline bool is_live(const TableReader& table, LeaseId lease) {
  return table.word_of(lease).state() == LeaseState::Live;
}

/// Errors: LeaseRevoked, LeaseFenced.
inline Result<void> check_live(const TableReader& table, LeaseId lease) {
  const LeaseWord word = table.word_of(lease);
  if (word.state() == LeaseState::Live) return {};
  if (word.state() == LeaseState::Revoked) {
    return fail(Errc::LeaseRevoked, fmt::format("lease {} was revoked ({}); acquire a new lease",
                                                to_string(lease), name(word.reason())));
  }
  return fail(Errc::LeaseFenced,
              fmt::format("lease {} is fenced; acquire a new lease", to_string(lease)));
}

}  // namespace leasehold
