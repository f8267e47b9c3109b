/// Every way we know to write to a lease table that was handed out for reading.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <string>

#include "common/unique_fd.hpp"

namespace leasehold {

struct Target {
  int table = -1;  ///< The descriptor the broker sent to a worker.
  std::size_t size_bytes = 0;
  pid_t broker = 0;
};

/// Tries them all; the name of each with the errno it failed with, 0 for one that got through.
/// Nothing is written even by one that does: opening for writing is proof enough.
std::map<std::string, int> attack(const Target& target);

/// A writable descriptor of the table, as a process of its owner's user gets one; nothing when that
/// is refused.
UniqueFd reopen_for_writing(int table);

std::string to_text(const std::map<std::string, int>& outcomes);
std::map<std::string, int> outcomes_from_text(const std::string& text);

}  // namespace leasehold
