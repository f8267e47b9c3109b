/// The memory that this process can use, and whether a promise of memory fits into it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/machine/control_group.hpp"
#include "common/result.hpp"

namespace leasehold {

struct MachineMemory {
  /// All memory of the machine, or the limit of a control group.
  std::uint64_t total_bytes = 0;
  /// What this process can still get from the machine and the group.
  std::uint64_t available_bytes = 0;
  /// File of the group's limit where that is the lower one; else empty.
  std::string limit_file;
};

/// MemTotal and MemAvailable of /proc/meminfo, or the limit of this process's control group where
/// that is lower: the kernel kills a process of a group that exceeds its limit. Errors: FileCorrupt
/// when the text lacks these lines; those of read_text_file.
Result<MachineMemory> machine_memory();

/// The same from the text of /proc/meminfo alone. Pure.
Result<MachineMemory> parse_machine_memory(std::string_view meminfo);

/// Returns `memory`, lowered to what the control group allows. Pure.
MachineMemory limited_by(MachineMemory memory, const std::optional<GroupMemory>& group);

/// True if the kernel refuses pages beyond a limit of its own (vm.overcommit_memory=2, proc(5)):
/// a page that is made on first use may then fail, which ends the process. Also true if the setting
/// cannot be read.
bool kernel_limits_pages();
/// The same from the text of /proc/sys/vm/overcommit_memory. Pure.
bool kernel_limits_pages(std::string_view overcommit_memory);

/// Checks memory that an option lets a program lend. It is compared with all memory of the machine,
/// not with what is available: a restarted broker finds its leases still in use. Pure.
/// Errors: BadRequest naming the option, both figures, the control group if it is the limit, and
/// what to set.
Result<void> check_fits_machine(std::string_view option, std::uint64_t size_bytes,
                                const MachineMemory& memory);

}  // namespace leasehold
