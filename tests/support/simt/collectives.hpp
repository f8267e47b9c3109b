/// Collective operations of a warp: shuffles, votes, matrix products.
///
/// Threads: called from within a kernel only.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "tests/support/simt/sync_points.hpp"

namespace leasehold::simt {

enum class Shuffle : std::uint8_t { Index, Xor };

void sync_warp(std::uint32_t mask);
std::uint32_t ballot(std::uint32_t mask, bool predicate);
/// `by` is a lane or a mask, depending on `how`. `width`: a power of two up to 32.
std::uint32_t shuffle_bits(Shuffle how, std::uint32_t mask, std::uint32_t bits, int by, int width);

template <class T>
T shuffle(Shuffle how, std::uint32_t mask, T value, int by, int width) {
  static_assert(sizeof(T) == 4, "shuffles exchange 32-bit words");
  return std::bit_cast<T>(shuffle_bits(how, mask, std::bit_cast<std::uint32_t>(value), by, width));
}

/// One lane's part of d += a · b, in the layout of mma.m16n8k16.
struct WarpProduct {
  float* d;                ///< [4]
  const std::uint32_t* a;  ///< [4]
  const std::uint32_t* b;  ///< [2]
};
void multiply_warp(WarpProduct part);

/// One lane's part of d += a · b of int8, in the layout of mma.m16n8k16 or, with two halves,
/// mma.m16n8k32.
struct WarpInt8Product {
  std::int32_t* d;         ///< [4]
  const std::uint32_t* a;  ///< [2 · halves]
  const std::uint32_t* b;  ///< [halves]
  unsigned halves;
};
void multiply_warp_int8(WarpInt8Product part);

/// The elements of a; those of b are halves or signed bytes.
enum class GroupElements : std::uint8_t { Halves, SignedBytes, UnsignedBytes };

/// One lane's part of d += a · b with b in shared memory, in the layout of wgmma.m64nNk16 or, with
/// bytes, wgmma.m64nNk32.
struct GroupProduct {
  GroupElements elements = GroupElements::Halves;
  bool adds = true;         ///< False: d = a · b.
  void* d;                  ///< [n_columns / 2] floats, or std::int32_t with bytes
  const std::uint32_t* a;   ///< [4]
  const std::byte* b;       ///< Core matrices: 8 columns of 16 bytes (8 or 16 k).
  std::uint32_t lbo_bytes;  ///< Distance of neighbouring core matrices in k.
  std::uint32_t sbo_bytes;  ///< ... and in columns.
  int n_columns;
};
void multiply_warpgroup(GroupProduct part);
void fence_products();
void commit_products();
void wait_products(int pending);

/// Both addresses are aligned to 16, as cp.async requires.
void copy_16(void* to, const void* from);
void copy_4(void* to, const void* from);
void commit_copies();
void wait_copies(int pending);
void fence_proxy_async();

}  // namespace leasehold::simt
