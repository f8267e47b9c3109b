#include "tests/support/simt/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <tuple>

#include "kernels/numerics/f16.hpp"
#include "tests/support/simt/async_work.hpp"

namespace leasehold::simt {
namespace {

struct Vote {
  bool mine;
  std::uint32_t all;
};

void count_votes(std::span<void* const> members) {
  std::uint32_t all = 0;
  for (unsigned i = 0; i < kLanes; ++i) {
    if (members[i] != nullptr && static_cast<Vote*>(members[i])->mine) all |= 1u << i;
  }
  for (void* const member : members) {
    if (member != nullptr) static_cast<Vote*>(member)->all = all;
  }
}

struct ShuffledWord {
  std::uint32_t mine;
  int source;
  std::uint32_t result;
};

void exchange(std::span<void* const> members) {
  for (void* const member : members) {
    if (member == nullptr) continue;
    auto& word = *static_cast<ShuffledWord*>(member);
    void* const source = members[static_cast<std::size_t>(word.source)];
    if (source == nullptr) {
      return fail_thread(
          fmt::format("a shuffle reads lane {}, which is not in its mask", word.source));
    }
    word.result = static_cast<const ShuffledWord*>(source)->mine;
  }
}

/// A lane outside its segment reads itself (PTX ISA, shfl.sync); an index wraps within the segment.
int source_lane(Shuffle how, int lane, int by, int width) {
  const int first = lane & ~(width - 1);
  const int last = first + width - 1;
  switch (how) {
    case Shuffle::Index:
      return first + (by & (width - 1));
    case Shuffle::Xor:
      return (lane ^ by) <= last ? lane ^ by : lane;
  }
  return lane;
}

/// The value of a half, without a branch: moves the bits to a float's position and scales the
/// exponent.
float value_of(std::uint32_t half) {
  const float magnitude = std::bit_cast<float>((half & 0x7FFF) << 13) * 0x1p112f;
  const std::uint32_t infinite = (half & 0x7C00) == 0x7C00 ? 0x7F80'0000u : 0u;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | infinite |
                              (half & 0x8000) << 16);
}

constexpr std::size_t kDepth = 16;  ///< Of one product of halves.
/// The rows of A for one warp.
using RowsOfA = std::array<std::array<float, kDepth>, 16>;

struct Pair {
  float first;
  float second;
};

Pair halves(std::uint32_t word) {
  return {value_of(word & 0xFFFF), value_of(word >> 16)};
}

/// A's fragment of lane (g, t): rows g and g+8, columns 2t, 2t+1 and those 8 further on.
void place_a(RowsOfA& rows, unsigned lane, const std::uint32_t* a) {
  const unsigned g = lane / 4;
  const unsigned t = lane % 4;
  for (unsigned i = 0; i < 4; ++i) {
    const auto [first, second] = halves(a[i]);
    auto& row = rows[g + 8 * (i % 2)];
    row[2 * t + 8 * (i / 2)] = first;
    row[2 * t + 8 * (i / 2) + 1] = second;
  }
}

/// b: [kDepth, 8]. Adds to the eight columns of d of two rows, in ascending k.
void add_products(std::array<float, 8>& d, const std::array<float, kDepth>& a,
                  const std::array<std::array<float, 8>, kDepth>& b) {
  for (std::size_t k = 0; k < kDepth; ++k) {
    for (std::size_t n = 0; n < 8; ++n) d[n] += a[k] * b[k][n];
  }
}

using ColumnsOfB = std::array<std::array<float, 8>, kDepth>;

/// Multiplies one 16 × 8 tile; each lane's d starts at `offset`.
template <class PartOf>
void multiply_tile(const RowsOfA& a, const ColumnsOfB& b, const PartOf& d_of_lane) {
  std::array<std::array<float, 8>, 16> d;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const float* const part = d_of_lane(lane);
    for (unsigned i = 0; i < 4; ++i) d[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2] = part[i];
  }
  for (std::size_t row = 0; row < 16; ++row) add_products(d[row], a[row], b);
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    float* const part = d_of_lane(lane);
    for (unsigned i = 0; i < 4; ++i) part[i] = d[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2];
  }
}

void finish_warp_product(std::span<void* const> members) {
  RowsOfA a;
  ColumnsOfB b;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const auto& part = *static_cast<const WarpProduct*>(members[lane]);
    place_a(a, lane, part.a);
    for (unsigned i = 0; i < 2; ++i) {
      const auto [first, second] = halves(part.b[i]);
      b[2 * (lane % 4) + 8 * i][lane / 4] = first;
      b[2 * (lane % 4) + 8 * i + 1][lane / 4] = second;
    }
  }
  multiply_tile(a, b,
                [&](unsigned lane) { return static_cast<const WarpProduct*>(members[lane])->d; });
}

std::int32_t int8_at(std::uint32_t word, unsigned i) {
  return static_cast<std::int8_t>(word >> 8 * i & 0xFF);
}

/// A's words of lane (g, t): 4t … 4t+3 of rows g and g+8, then the same 16 further on. B's: the
/// same rows of column g.
void finish_warp_int8_product(std::span<void* const> members) {
  const auto part = [&](unsigned lane) -> const WarpInt8Product& {
    return *static_cast<const WarpInt8Product*>(members[lane]);
  };
  std::array<std::array<std::int32_t, 32>, 16> a{};
  std::array<std::array<std::int32_t, 32>, 8> b{};  // by column
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (part(lane).halves != part(0).halves) fail_thread("the lanes of an mma differ in its depth");
    for (unsigned half = 0; half < part(0).halves; ++half)
      for (unsigned i = 0; i < 4; ++i) {
        const unsigned k = 16 * half + 4 * (lane % 4) + i;
        a[lane / 4][k] = int8_at(part(lane).a[2 * half], i);
        a[lane / 4 + 8][k] = int8_at(part(lane).a[2 * half + 1], i);
        b[lane / 4][k] = int8_at(part(lane).b[half], i);
      }
  }
  for (unsigned lane = 0; lane < kLanes; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      const auto& row = a[lane / 4 + 8 * (i / 2)];
      const auto& column = b[2 * (lane % 4) + i % 2];
      part(lane).d[i] = std::inner_product(row.begin(), row.end(), column.begin(), part(lane).d[i]);
    }
}

/// Columns from 8·tile, all of k.
ColumnsOfB columns_in_shared(const GroupProduct& product, int tile) {
  ColumnsOfB b;
  for (std::size_t k = 0; k < kDepth; ++k) {
    for (std::size_t n = 0; n < 8; ++n) {
      Half bits = 0;
      std::memcpy(&bits,
                  product.b + k / 8 * product.lbo_bytes +
                      static_cast<std::size_t>(tile) * product.sbo_bytes + n * 16 + k % 8 * 2,
                  sizeof bits);
      b[k][n] = value_of(bits);
    }
  }
  return b;
}

/// Copies the registers now; reads b when the product is computed.
void queue_group_product(std::span<void* const> members) {
  const auto part = [&](unsigned lane) -> const GroupProduct& {
    return *static_cast<const GroupProduct*>(members[lane]);
  };
  const auto described = [&](unsigned lane) {
    const GroupProduct& one = part(lane);
    return std::tuple(one.elements, one.adds, one.b, one.lbo_bytes, one.sbo_bytes, one.n_columns);
  };
  QueuedProduct product{.a = {}, .d = {}, .described = part(0)};
  for (unsigned lane = 0; lane < kWarpgroup; ++lane) {
    if (described(lane) != described(0))
      fail_thread("the threads of a warpgroup pass different matrices to wgmma");
    std::copy_n(part(lane).a, 4, product.a[lane].begin());
    product.d[lane] = part(lane).d;
  }
  async_work().queue(running_thread() / kWarpgroup, product);
}

void multiply_halves(const QueuedProduct& product) {
  std::array<RowsOfA, 4> a;
  for (unsigned i = 0; i < kWarpgroup; ++i) place_a(a[i / kLanes], i % kLanes, product.a[i].data());
  for (int tile = 0; tile < product.described.n_columns / 8; ++tile) {
    const ColumnsOfB b = columns_in_shared(product.described, tile);
    for (unsigned warp = 0; warp < 4; ++warp)
      multiply_tile(a[warp], b, [&](unsigned lane) {
        return static_cast<float*>(product.d[warp * kLanes + lane]) +
               4 * static_cast<std::ptrdiff_t>(tile);
      });
  }
}

constexpr std::size_t kByteDepth = 32;
using RowOfBytes = std::array<std::int16_t, kByteDepth>;

/// The rows of A. Lane (g, t) of a warp has k 4t … 4t+3 of rows g and g+8, and those 16 further on.
std::array<RowOfBytes, 64> rows_of_bytes(const QueuedProduct& product) {
  const bool is_signed = product.described.elements == GroupElements::SignedBytes;
  std::array<RowOfBytes, 64> rows;
  for (unsigned thread = 0; thread < kWarpgroup; ++thread)
    for (unsigned i = 0; i < 16; ++i) {
      const unsigned word = i / 4;
      const unsigned row = thread / kLanes * 16 + thread % kLanes / 4 + word % 2 * 8;
      const std::uint32_t byte = product.a[thread][word] >> i % 4 * 8 & 255;
      rows[row][word / 2 * 16 + thread % 4 * 4 + i % 4] =
          is_signed ? static_cast<std::int8_t>(byte) : static_cast<std::int16_t>(byte);
    }
  return rows;
}

RowOfBytes column_of_bytes(const GroupProduct& product, std::size_t column) {
  RowOfBytes k;
  for (std::size_t i = 0; i < kByteDepth; ++i)
    k[i] = static_cast<std::int8_t>(
        product.b[i / 16 * product.lbo_bytes + column / 8 * product.sbo_bytes + column % 8 * 16 +
                  i % 16]);
  return k;
}

/// Sums wrap, as on a card.
void multiply_bytes(const QueuedProduct& product) {
  const auto rows = rows_of_bytes(product);
  for (unsigned column = 0; column < static_cast<unsigned>(product.described.n_columns); ++column) {
    const RowOfBytes b = column_of_bytes(product.described, column);
    for (unsigned row = 0; row < rows.size(); ++row) {
      const unsigned thread = row / 16 * kLanes + row % 8 * 4 + column % 8 / 2;
      std::int32_t& d = static_cast<std::int32_t*>(
          product.d[thread])[column / 8 * 4 + row % 16 / 8 * 2 + column % 2];
      const std::int32_t dot = std::inner_product(rows[row].begin(), rows[row].end(), b.begin(), 0);
      const std::uint32_t before = product.described.adds ? static_cast<std::uint32_t>(d) : 0;
      d = static_cast<std::int32_t>(before + static_cast<std::uint32_t>(dot));
    }
  }
}

}  // namespace

void multiply(const QueuedProduct& product) {
  if (product.described.elements == GroupElements::Halves) {
    multiply_halves(product);
  } else {
    multiply_bytes(product);
  }
}

void sync_warp(std::uint32_t mask) {
  arrive_and_wait_warp({"__syncwarp", nullptr}, mask, nullptr);
}

std::uint32_t ballot(std::uint32_t mask, bool predicate) {
  Vote vote{.mine = predicate, .all = 0};
  arrive_and_wait_warp({"a vote", &count_votes}, mask, &vote);
  return vote.all;
}

std::uint32_t shuffle_bits(Shuffle how, std::uint32_t mask, std::uint32_t bits, int by, int width) {
  if (width < 1 || width > 32 || (width & (width - 1)) != 0 || (by < 0 && how != Shuffle::Index))
    fail_thread(fmt::format("a shuffle by {} in segments of {} is not valid", by, width));
  ShuffledWord word{
      .mine = bits,
      .source = source_lane(how, static_cast<int>(running_thread() % kLanes), by, width),
      .result = 0};
  arrive_and_wait_warp({"a shuffle", &exchange}, mask, &word);
  return word.result;
}

void multiply_warp(WarpProduct part) {
  arrive_and_wait_warp({"mma", &finish_warp_product}, 0xFFFF'FFFFu, &part);
}

void multiply_warp_int8(WarpInt8Product part) {
  arrive_and_wait_warp({"mma of int8", &finish_warp_int8_product}, 0xFFFF'FFFFu, &part);
}

void multiply_warpgroup(GroupProduct part) {
  const auto misaligned = [](std::uintptr_t value) { return value % 16 != 0; };
  if (misaligned(reinterpret_cast<std::uintptr_t>(part.b)) || misaligned(part.lbo_bytes) ||
      misaligned(part.sbo_bytes))
    fail_thread("wgmma needs a matrix address and strides that are multiples of 16");
  constexpr std::uint32_t kEndOfStrides = 1u << 18;  // 14 bits in a descriptor, in units of 16
  if (part.lbo_bytes >= kEndOfStrides || part.sbo_bytes >= kEndOfStrides)
    fail_thread("wgmma needs strides below 256 KiB");
  arrive_and_wait_warpgroup({"wgmma", &queue_group_product}, &part);
}

void fence_products() {
  async_work().fence_registers(running_thread());
}

void commit_products() {
  async_work().commit_products(running_thread());
}

void wait_products(int pending) {
  async_work().wait_products(running_thread(), static_cast<std::size_t>(pending));
}

namespace {

void copy(void* to, const void* from, std::size_t size_bytes) {
  if ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) %
          size_bytes !=
      0)
    fail_thread("an asynchronous copy needs addresses that are multiples of its size");
  async_work().copy(running_thread(), to, from, size_bytes);
}

}  // namespace

void copy_16(void* to, const void* from) {
  copy(to, from, 16);
}
void copy_4(void* to, const void* from) {
  copy(to, from, 4);
}

void commit_copies() {
  async_work().commit_copies(running_thread());
}

void wait_copies(int pending) {
  async_work().wait_copies(running_thread(), static_cast<std::size_t>(pending));
}

void fence_proxy_async() {
  async_work().fence_proxy_async(running_thread());
}

}  // namespace leasehold::simt
