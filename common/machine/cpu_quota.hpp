/// How much CPU time control groups allow this process.
///
/// Source: "cpu.max" in the kernel's Documentation/admin-guide/cgroup-v2.rst. Groups of version 1
/// are not read.
#pragma once

#include <optional>
#include <string_view>

#include "common/machine/control_group.hpp"

namespace leasehold {

/// Cores whose time the file "cpu.max" allows: 1.5 for "150000 100000". Nothing for "max", and for
/// a text that is malformed. Pure.
std::optional<double> parse_cpu_max(std::string_view text);

/// The smallest quota of the process's control group and of those above it, in cores; nothing if
/// none has one, or cannot be read.
std::optional<double> cpu_quota(const ReadFile& read);

/// The same from the files of this machine.
std::optional<double> cpu_quota();

}  // namespace leasehold
