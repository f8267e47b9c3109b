/// Counts the bytes that a piece of work allocates: a measure of work without a clock, which the
/// code under test does not report itself. Needs a sanitizer's allocator. Threads: one.
#pragma once

#include <sanitizer/allocator_interface.h>

#include <cstddef>

namespace leasehold::fuzz {

/// All bytes allocated since the first call.
inline std::size_t allocated_bytes() {
  static std::size_t total = 0;
  static const int installed = __sanitizer_install_malloc_and_free_hooks(
      [](const volatile void*, std::size_t size) { total += size; }, [](const volatile void*) {});
  (void)installed;
  return total;
}

}  // namespace leasehold::fuzz
