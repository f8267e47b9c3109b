/// The memory of this machine, and whether a promise of memory fits into it.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/result.hpp"

namespace leasehold {

struct MachineMemory {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;  ///< That the machine can still give to programs.
};

/// MemTotal and MemAvailable of /proc/meminfo. Errors: FileCorrupt when the text has no such lines;
/// those of read_text_file.
Result<MachineMemory> machine_memory();

/// The same from the text of /proc/meminfo. Pure.
Result<MachineMemory> parse_machine_memory(std::string_view meminfo);

/// Checks memory that an option lets a program lend. It is compared with all memory of the machine,
/// not with what is available: a restarted broker finds its leases still in use. Pure.
/// Errors: BadRequest naming the option, both figures and what to set.
Result<void> check_fits_machine(std::string_view option, std::uint64_t size_bytes,
                                const MachineMemory& memory);

}  // namespace leasehold
