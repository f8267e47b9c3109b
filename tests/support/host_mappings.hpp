/// The mappings of this process, as the kernel lists them.
///
/// Threads: any; the answer is as old as the call. Source: proc(5), /proc/pid/maps.
#pragma once

#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

namespace leasehold::testing {

struct HostMapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool is_readable = false;
  bool is_writable = false;

  bool contains(std::uintptr_t at, std::size_t size_bytes) const {
    return begin <= at && at < end && size_bytes <= end - at;
  }
};

/// The mapping that holds this address; nullopt if nothing is mapped there.
inline std::optional<HostMapping> host_mapping_at(std::uintptr_t at) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    HostMapping mapping;
    char rights[5] = {};
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &mapping.begin, &mapping.end,
                    rights) != 3 ||
        !mapping.contains(at, 1))
      continue;
    mapping.is_readable = rights[0] == 'r';
    mapping.is_writable = rights[1] == 'w';
    return mapping;
  }
  return std::nullopt;
}

}  // namespace leasehold::testing
