#include "kernels/cpu/amx/support.hpp"

#include <asm/prctl.h>
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace leasehold::amx {
namespace {

// Intel SDM, volume 2A, CPUID, and volume 1, section 13.1 and chapter 18.
constexpr std::uint32_t kFeatures = 7;
constexpr std::uint32_t kAmxTile = 1u << 24;  // EDX
constexpr std::uint32_t kAmxInt8 = 1u << 25;
constexpr std::uint32_t kOsXsave = 1u << 27;  // ECX of leaf 1
constexpr std::uint32_t kXcr0Tiles = 1u << 17 | 1u << 18;

constexpr long kTileData = 18;  // the component of the extended state

bool are_tiles_enabled() {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kOsXsave) == 0) return false;
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kXcr0Tiles) == kXcr0Tiles;
}

Support detect() {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(kFeatures, 0, &eax, &ebx, &ecx, &edx) == 0) edx = 0;
  Support found{
      .has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni"),
      .has_tiles = (edx & kAmxTile) != 0,
      .has_int8 = (edx & kAmxInt8) != 0,
      .is_enabled = false,
      .is_permitted = false};
  if (!found.has_avx512 || !found.has_tiles || !found.has_int8) return found;
  found.is_enabled = are_tiles_enabled();
  if (found.is_enabled)
    found.is_permitted = syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, kTileData) == 0;
  return found;
}

}  // namespace

std::string_view missing(const Support& support) {
  if (!support.has_tiles) return "AMX-TILE";
  if (!support.has_int8) return "AMX-INT8";
  if (!support.has_avx512) return "AVX-512 with VNNI";
  if (!support.is_enabled) return "XCR0 bits 17 and 18, which Linux 5.16 and later set";
  if (!support.is_permitted)
    return "the kernel's permission (arch_prctl ARCH_REQ_XCOMP_PERM for tile data)";
  return {};
}

const Support& support() {
  static const Support found = detect();
  return found;
}

}  // namespace leasehold::amx
