/// All known ways to write to a lease table that was received read-only.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <string>

#include "common/machine/unique_fd.hpp"

namespace leasehold {

struct Target {
  int table = -1;  ///< The descriptor the broker sent to a worker.
  std::size_t size_bytes = 0;
  pid_t broker = 0;
};

/// Tries every attack; returns each attack's name with its errno, 0 if it succeeded. A successful
/// attack writes nothing: write access alone is the finding.
std::map<std::string, int> attack(const Target& target);

/// A writable descriptor of the table, which a process of the owner's user can get; empty if
/// refused.
UniqueFd reopen_for_writing(int table);

std::string to_text(const std::map<std::string, int>& outcomes);
std::map<std::string, int> outcomes_from_text(const std::string& text);

}  // namespace leasehold
