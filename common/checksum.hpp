/// FNV-1a with 64 bits (Fowler, Noll, Vo), computed piece by piece. It detects torn and damaged
/// bytes: every change of one byte changes the sum. It does not detect deliberate changes. Values
/// are stored on disk.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leasehold {

struct Checksum {
  std::uint64_t value = 0xCBF2'9CE4'8422'2325ull;

  void add(const void* data, std::size_t size_bytes) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < size_bytes; ++i) value = (value ^ bytes[i]) * 0x100'0000'01B3ull;
  }
  static std::uint64_t of(const void* data, std::size_t size_bytes) {
    Checksum sum;
    sum.add(data, size_bytes);
    return sum.value;
  }
};

}  // namespace leasehold
