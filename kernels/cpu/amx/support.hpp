/// Whether this machine may execute AMX instructions on bytes.
#pragma once

#include <string_view>

namespace leasehold::amx {

struct Support {
  bool has_avx512;    ///< The instructions of the AVX-512 path, with VNNI and byte operations.
  bool has_tiles;     ///< CPUID: AMX-TILE.
  bool has_int8;      ///< CPUID: AMX-INT8.
  bool is_enabled;    ///< XCR0: the kernel saves tiles and their configuration.
  bool is_permitted;  ///< The kernel permits this process to use tiles.
};

/// What this machine lacks; empty if nothing.
std::string_view missing(const Support& support);

/// The first call asks the kernel for the permission, which then holds for all threads of the
/// process until exec. Threads: any.
const Support& support();

}  // namespace leasehold::amx
