/// Small kernels, each for one promise of the runner.
#include "kernels/cuda/device/simt.cuh"
#include "tests/unit/support/simt/kernels.hpp"

namespace leasehold::simt {
namespace {

using namespace leasehold::device;

/// Every thread reads a word of another thread through shared memory: out[i] = in[n-1-i] of each
/// block.
LEASEHOLD_KERNEL(lh_test_reverse, Words, 256) {
  __shared__ std::uint32_t words[256];
  const std::uint32_t first = blockIdx.x * blockDim.x;
  words[threadIdx.x] = p.in[first + threadIdx.x];
  __syncthreads();
  p.out[first + threadIdx.x] = words[blockDim.x - 1 - threadIdx.x];
}

/// As lh_test_reverse, in dynamic shared memory and without the necessary barrier.
LEASEHOLD_KERNEL(lh_test_reverse_early, Words, 256) {
  auto* const words = reinterpret_cast<std::uint32_t*>(dynamic_shared());
  words[threadIdx.x] = p.in[threadIdx.x];
  p.out[threadIdx.x] = words[blockDim.x - 1 - threadIdx.x];
}

LEASEHOLD_KERNEL(lh_test_warp_sum, Words, 128) {
  std::uint32_t sum = p.in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, lanes);
  if (threadIdx.x % 32 == 0) p.out[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = sum;
}

/// One row of 32 words for each of the two shuffles, in segments of p.n.
LEASEHOLD_KERNEL(lh_test_shuffles, Words, 32) {
  const std::uint32_t mine = p.in[threadIdx.x];
  const int width = static_cast<int>(p.n);
  p.out[threadIdx.x] = __shfl_sync(0xFFFFFFFFu, mine, 3, width);
  p.out[32 + threadIdx.x] = __shfl_xor_sync(0xFFFFFFFFu, mine, 2, width);
}

/// The two halves of a warp take different branches and vote separately.
LEASEHOLD_KERNEL(lh_test_votes, Words, 32) {
  const bool odd = p.in[threadIdx.x] % 2 != 0;
  if (threadIdx.x < 16) {
    p.out[threadIdx.x] = __ballot_sync(0x0000FFFFu, odd);
  } else {
    p.out[threadIdx.x] = __ballot_sync(0xFFFF0000u, odd);
  }
}

LEASEHOLD_KERNEL(lh_test_count, Words, 64) {
  if (p.in[threadIdx.x] >= p.n) atomicAdd(&p.out[0], 1u);
}

/// Block i records that it ran as number out[n].
LEASEHOLD_KERNEL(lh_test_order, Words, 32) {
  if (threadIdx.x != 0) return;
  p.out[blockIdx.x] = atomicAdd(&p.out[p.n], 1u);
}

LEASEHOLD_KERNEL(lh_test_loads_shared, Words, 32) {
  const auto* const shared = dynamic_shared() + 8 * threadIdx.x;
  p.out[threadIdx.x] = load_aligned<std::uint32_t>(shared) + load_aligned<uint2>(shared).y;
}

LEASEHOLD_KERNEL(lh_test_divergent_barrier, Words, 64) {
  if (threadIdx.x >= 32) return;
  __syncthreads();
}

LEASEHOLD_KERNEL(lh_test_divergent_shuffle, Words, 32) {
  if (threadIdx.x == 7) return;
  p.out[threadIdx.x] = __shfl_sync(0xFFFFFFFFu, p.in[threadIdx.x], 0);
}

LEASEHOLD_KERNEL(lh_test_absent_lane, Words, 32) {
  if (threadIdx.x < 16) p.out[threadIdx.x] = __shfl_sync(0x0000FFFFu, p.in[threadIdx.x], 20);
}

LEASEHOLD_KERNEL(lh_test_writes_behind, Words, 32) {
  dynamic_shared()[p.n + threadIdx.x] = std::byte{0};
}

LEASEHOLD_KERNEL(lh_test_reads_behind_params, Words, 32) {
  p.out[threadIdx.x] = reinterpret_cast<const std::uint32_t*>(&p + 1)[0];
}

/// Reads shared memory before any thread writes it.
LEASEHOLD_KERNEL(lh_test_first_word, Words, 32) {
  p.out[threadIdx.x] = reinterpret_cast<std::uint32_t*>(dynamic_shared())[threadIdx.x];
}

__device__ __forceinline__ std::uint32_t two_halves(const std::uint16_t* at) {
  return static_cast<std::uint32_t>(at[1]) << 16 | at[0];
}

/// One warp, 16 × 8.
LEASEHOLD_KERNEL(lh_test_mma, Product, 32) {
  const std::uint32_t g = threadIdx.x / 4;
  const std::uint32_t t = threadIdx.x % 4;
  float d[4] = {0, 0, 0, 0};
  for (std::uint32_t k = 0; k < p.depth; k += 16) {
    std::uint32_t a[4];
    for (std::uint32_t i = 0; i < 4; ++i)
      a[i] = two_halves(p.a + (g + 8 * (i % 2)) * p.depth + k + 2 * t + 8 * (i / 2));
    std::uint32_t b[2];
    for (std::uint32_t i = 0; i < 2; ++i) {
      const std::uint32_t row = k + 2 * t + 8 * i;
      b[i] = static_cast<std::uint32_t>(p.b[(row + 1) * 8 + g]) << 16 | p.b[row * 8 + g];
    }
    mma_16x8x16(d, a, b);
  }
  p.d[g * 8 + 2 * t] = d[0];
  p.d[g * 8 + 2 * t + 1] = d[1];
  p.d[(g + 8) * 8 + 2 * t] = d[2];
  p.d[(g + 8) * 8 + 2 * t + 1] = d[3];
}

__device__ __forceinline__ std::uint32_t four_bytes(const std::int8_t* at) {
  std::uint32_t word = 0;
  for (std::uint32_t i = 0; i < 4; ++i)
    word |= std::uint32_t{static_cast<std::uint8_t>(at[i])} << 8 * i;
  return word;
}

/// One warp, 16 × 8.
LEASEHOLD_KERNEL(lh_test_mma_int8, Int8Product, 32) {
  const std::uint32_t g = threadIdx.x / 4;
  const std::uint32_t t = threadIdx.x % 4;
  const std::int8_t* a = p.a + g * p.depth + 4 * t;
  const std::int8_t* b = p.b + g * p.depth + 4 * t;
  constexpr std::int32_t kStart = 3;
  std::int32_t d[4];
  if (p.depth == 16) {
    const std::uint32_t words[2] = {four_bytes(a), four_bytes(a + 8 * p.depth)};
    mma_int8_16x8x16(d, kStart, words, four_bytes(b));
  } else {
    const std::uint32_t words[4] = {four_bytes(a), four_bytes(a + 8 * p.depth), four_bytes(a + 16),
                                    four_bytes(a + 8 * p.depth + 16)};
    const std::uint32_t columns[2] = {four_bytes(b), four_bytes(b + 16)};
    mma_int8_16x8x32(d, kStart, words, columns);
  }
  for (std::uint32_t i = 0; i < 4; ++i) p.d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
}

/// d[thread] = a of the thread's four bytes times b's, plus d.
LEASEHOLD_KERNEL(lh_test_dp4a, Int8Product, 32) {
  p.d[threadIdx.x] =
      __dp4a(static_cast<std::int32_t>(four_bytes(p.a + 4 * threadIdx.x)),
             static_cast<std::int32_t>(four_bytes(p.b + 4 * threadIdx.x)), p.d[threadIdx.x]);
}

/// b's [16 × kColumns] from row k, as core matrices: those of one column group are adjacent in k.
template <int kColumns>
__device__ void place_columns(const Product& p, std::uint32_t k) {
  auto* const shared = reinterpret_cast<std::uint16_t*>(dynamic_shared());
  for (std::uint32_t i = threadIdx.x; i < 16 * kColumns; i += blockDim.x) {
    const std::uint32_t row = i / kColumns;
    const std::uint32_t column = i % kColumns;
    shared[column / 8 * 128 + row / 8 * 64 + column % 8 * 8 + row % 8] =
        p.b[(k + row) * kColumns + column];
  }
}

/// One warpgroup, 64 × kColumns.
template <int kColumns>
__device__ void multiply_group(const Product& p) {
  const std::uint32_t g = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  const std::uint32_t t = threadIdx.x % 4;
  float d[kColumns / 2];
  for (int i = 0; i < kColumns / 2; ++i) d[i] = 0;
  for (std::uint32_t k = 0; k < p.depth; k += 16) {
    place_columns<kColumns>(p, k);
    fence_proxy_async();
    __syncthreads();
    std::uint32_t a[4];
    for (std::uint32_t i = 0; i < 4; ++i)
      a[i] = two_halves(p.a + (g + 8 * (i % 2)) * p.depth + k + 2 * t + 8 * (i / 2));
    wgmma_fence();
    wgmma_64x16<kColumns>(d, a, dynamic_shared(), 128, 256);
    wgmma_commit();
    wgmma_wait<0>();
    __syncthreads();
  }
  for (std::uint32_t i = 0; i < kColumns / 2; ++i)
    p.d[(g + 8 * (i / 2 % 2)) * kColumns + i / 4 * 8 + 2 * t + i % 2] = d[i];
}

LEASEHOLD_KERNEL(lh_test_wgmma_8, Product, 128) {
  multiply_group<8>(p);
}
LEASEHOLD_KERNEL(lh_test_wgmma_32, Product, 128) {
  multiply_group<32>(p);
}
LEASEHOLD_KERNEL(lh_test_wgmma_128, Product, 128) {
  multiply_group<128>(p);
}

/// b's [32 × kColumns] from k on, as core matrices: neighbours in columns are adjacent.
template <int kColumns>
__device__ void place_byte_columns(const Int8Product& p, std::uint32_t k) {
  for (std::uint32_t i = threadIdx.x; i < 32 * kColumns; i += blockDim.x) {
    const std::uint32_t column = i / 32;
    dynamic_shared()[i % 32 / 16 * kColumns * 16 + column * 16 + i % 16] =
        static_cast<std::byte>(p.b[column * p.depth + k + i % 32]);
  }
}

/// One warpgroup, 64 × kColumns. The first product replaces what d holds before.
template <int kColumns, bool kIsSigned>
__device__ void multiply_group_int8(const Int8Product& p) {
  const std::uint32_t g = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  const std::uint32_t t = threadIdx.x % 4;
  std::int32_t d[kColumns / 2];
  for (int i = 0; i < kColumns / 2; ++i) d[i] = 77;
  for (std::uint32_t k = 0; k < p.depth; k += 32) {
    place_byte_columns<kColumns>(p, k);
    fence_proxy_async();
    __syncthreads();
    std::uint32_t a[4];
    for (std::uint32_t i = 0; i < 4; ++i)
      a[i] = four_bytes(p.a + (g + 8 * (i % 2)) * p.depth + k + 4 * t + 16 * (i / 2));
    wgmma_fence();
    wgmma_int8_64x32<kColumns, kIsSigned>(d, a, dynamic_shared(), kColumns * 16, 128, k > 0);
    wgmma_commit();
    wgmma_wait<0>();
    __syncthreads();
  }
  for (std::uint32_t i = 0; i < kColumns / 2; ++i)
    p.d[(g + 8 * (i / 2 % 2)) * kColumns + i / 4 * 8 + 2 * t + i % 2] = d[i];
}

LEASEHOLD_KERNEL(lh_test_wgmma_int8_8, Int8Product, 128) {
  multiply_group_int8<8, true>(p);
}
LEASEHOLD_KERNEL(lh_test_wgmma_int8_128, Int8Product, 128) {
  multiply_group_int8<128, true>(p);
}
LEASEHOLD_KERNEL(lh_test_wgmma_uint8_32, Int8Product, 128) {
  multiply_group_int8<32, false>(p);
}

/// d: each thread's first sum before, between and after the waits for two products of ones.
LEASEHOLD_KERNEL(lh_test_wgmma_int8_waits, Int8Product, 128) {
  for (std::uint32_t i = threadIdx.x; i < 256; i += blockDim.x) dynamic_shared()[i] = std::byte{1};
  fence_proxy_async();
  __syncthreads();
  const std::uint32_t a[4] = {0x01010101u, 0x01010101u, 0x01010101u, 0x01010101u};
  std::int32_t sums[4] = {};
  for (std::uint32_t i = 0; i < 2; ++i) {
    wgmma_fence();
    wgmma_int8_64x32<8, true>(sums, a, dynamic_shared(), 128, 128, true);
    wgmma_commit();
  }
  std::int32_t* const out = p.d + 3 * threadIdx.x;
  out[0] = sums[0];
  __syncthreads();  // the first thread that waits completes the products of all
  wgmma_wait<1>();
  out[1] = sums[0];
  __syncthreads();
  wgmma_wait<0>();
  out[2] = sums[0];
}

/// p.depth: the threads agree on whether they add.
LEASEHOLD_KERNEL(lh_test_wgmma_int8_differs, Int8Product, 128) {
  const std::uint32_t a[4] = {};
  std::int32_t sums[4] = {};
  wgmma_fence();
  wgmma_int8_64x32<8, true>(sums, a, dynamic_shared(), 128, 128, p.depth != 0 || threadIdx.x < 64);
  wgmma_commit();
  wgmma_wait<0>();
}

/// Copies 16 bytes per thread, twice. out: what the thread reads before any wait, after the first
/// copy's wait, and after both.
LEASEHOLD_KERNEL(lh_test_copy, Words, 32) {
  auto* const shared = reinterpret_cast<std::uint32_t*>(dynamic_shared()) + 8 * threadIdx.x;
  for (std::uint32_t i = 0; i < 2; ++i) {
    copy_async_16(shared + 4 * i, p.in + 4 * i);
    copy_async_commit();
  }
  std::uint32_t* const out = p.out + 6 * threadIdx.x;
  out[0] = shared[0];
  out[1] = shared[4];
  copy_async_wait<1>();
  out[2] = shared[0];
  out[3] = shared[4];
  copy_async_wait<0>();
  out[4] = shared[0];
  out[5] = shared[4];
}

LEASEHOLD_KERNEL(lh_test_wgmma_unwaited, Product, 128) {
  const std::uint32_t a[4] = {};
  float d[4] = {};
  wgmma_fence();
  wgmma_64x16<8>(d, a, dynamic_shared(), 128, 256);
  wgmma_commit();
}

/// Two products. The code reads the sums, and so may write them, after the fence and before the
/// second product.
LEASEHOLD_KERNEL(lh_test_wgmma_unfenced, Product, 128) {
  const std::uint32_t a[4] = {};
  float d[4] = {};
  wgmma_fence();
  for (std::uint32_t i = 0; i < 2; ++i) {
    wgmma_64x16<8>(d, a, dynamic_shared(), 128, 256);
    wgmma_commit();
    wgmma_wait<0>();
  }
}

/// One thread copies for all; p.depth: it fences its copies for wgmma.
LEASEHOLD_KERNEL(lh_test_wgmma_copied, Product, 128) {
  const std::uint32_t a[4] = {};
  float d[4] = {};
  if (threadIdx.x == 77) {
    copy_async_16(dynamic_shared(), p.b);
    copy_async_commit();
    copy_async_wait<0>();
    if (p.depth != 0) fence_proxy_async();
  }
  __syncthreads();
  wgmma_fence();
  wgmma_64x16<8>(d, a, dynamic_shared(), 128, 256);
  wgmma_commit();
  wgmma_wait<0>();
}

}  // namespace
}  // namespace leasehold::simt
