#include "kernels/cpu/avx512/int8.hpp"

#include <array>
#include <utility>

#include "kernels/cpu/avx512/int8_blocks.hpp"
#include "kernels/cpu/avx512/int8_chunks.hpp"

namespace leasehold::avx512 {
namespace {

/// A pass over rows from `first` on. Earlier passes have requested `share_bytes` of what comes
/// next.
using RunPass = void (*)(const Part& part, std::uint32_t first, std::size_t share_bytes);

template <int kGroups, int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
begin_chunk(const Part& part, std::uint32_t first, FloatTile<kGroups, kRows>& chunk) {
#pragma GCC unroll 16
  for (int i = 0; i < kGroups * kRows; ++i) chunk[i / kRows][i % kRows] = _mm512_setzero_ps();
  if (part.begins_chunk) return;
#pragma GCC unroll 16
  for (int i = 0; i < kGroups * kRows; ++i)
    chunk[i / kRows][i % kRows] = _mm512_load_ps(part.scratch->chunk[i / kRows][first + i % kRows]);
}

template <int kGroups, int kRows>
[[gnu::always_inline, gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] inline void
end_chunk(const Part& part, std::uint32_t first, const FloatTile<kGroups, kRows>& chunk) {
  GroupDots* to = part.ends_chunk ? part.out : part.scratch->chunk;
  const bool adds = part.ends_chunk && !part.is_first_chunk;
#pragma GCC unroll 16
  for (int i = 0; i < kGroups * kRows; ++i) {
    float* dots = to[i / kRows][first + i % kRows];
    const __m512 sum = chunk[i / kRows][i % kRows];
    _mm512_storeu_ps(dots, adds ? _mm512_add_ps(_mm512_loadu_ps(dots), sum) : sum);
  }
}

template <TensorType kType, int kRows>
[[gnu::always_inline]] inline PassRows<kRows> pass_rows(const Part& part, std::uint32_t first) {
  constexpr std::size_t kElements = group_format(kType).elements;
  PassRows<kRows> x;
  x.terms = part.scratch->terms + first;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    x.q[r] = part.x[first + r].q + part.block * kElements;
    x.scales[r] = part.x[first + r].scale + part.block;
    x.sums[r] = part.x[first + r].sums + part.block * (kElements / kInt8Strip);
  }
  return x;
}

/// Multiplies the part with rows from `first` on.
template <TensorType kType, Pass kPass, int kGroups, int kRows>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] void run_pass(
    const Part& shared, std::uint32_t first, std::size_t share_bytes) {
  Part part = shared;  // a copy, so that stores of codes do not alias it
  part.ahead_bytes += share_bytes;
  const PassRows<kRows> x = pass_rows<kType, kRows>(part, first);
  FloatTile<kGroups, kRows> chunk;
  begin_chunk<kGroups, kRows>(part, first, chunk);
  add_super_block<kType, kPass, kGroups, kRows>(part, x, chunk);
  end_chunk<kGroups, kRows>(part, first, chunk);
}

/// The most rows of a pass, so that their sums of a block and of a chunk fit the registers.
template <int kGroups>
constexpr std::uint32_t kMostRows = kGroups == 1 ? 8 : 4;
/// The fewest rows of a pass. Two groups are multiplied together if each pass has at least three
/// rows.
template <int kGroups>
constexpr std::uint32_t kLeastRows = kGroups == 1 ? 1 : 3;
constexpr std::uint32_t kRowsOfPairs = 6;

template <TensorType kType, Pass kPass, int kGroups>
constexpr auto kRunPass = []<int... kMore>(std::integer_sequence<int, kMore...>) {
  return std::array<RunPass, sizeof...(kMore)>{
      run_pass<kType, kPass, kGroups, kLeastRows<kGroups> + kMore>...};
}(std::make_integer_sequence<int, kMostRows<kGroups> - kLeastRows<kGroups> + 1>());

/// Passes over all rows of a tile, with nearly the same number of rows each.
class Passes {
 public:
  template <TensorType kType, int kGroups>
  static Passes plan(std::uint32_t n_rows) {
    constexpr Pass kFirst = kGroups == 1 ? Pass::Only : Pass::First;
    constexpr Pass kLater = kGroups == 1 ? Pass::Only : Pass::Later;
    Passes passes;
    passes.n_ = tiles_for(n_rows, kMostRows<kGroups>);
    for (std::uint32_t i = 0; i < passes.n_; ++i) {
      const std::uint32_t first = i * n_rows / passes.n_;
      const std::uint32_t size = (i + 1) * n_rows / passes.n_ - first - kLeastRows<kGroups>;
      passes.first_[i] = first;
      passes.run_[i] =
          i == 0 ? kRunPass<kType, kFirst, kGroups>[size] : kRunPass<kType, kLater, kGroups>[size];
    }
    return passes;
  }
  std::uint32_t count() const { return n_; }
  /// Each pass requests a share of what comes next. Part is not copied here: the copy would load
  /// several members at once that were just stored one by one, and wait for these stores.
  void run(const Part& part, std::size_t share_bytes) const {
    for (std::uint32_t i = 0; i < n_; ++i) run_[i](part, first_[i], i * share_bytes);
  }

 private:
  static constexpr std::uint32_t kMost = kInt8TileRows / kMostRows<kInt8TileGroups>;
  std::uint32_t n_;
  std::uint32_t first_[kMost];
  RunPass run_[kMost];
};

/// Finds the part's block in each group, and prepares the factors and terms of these blocks.
template <TensorType kType, int kGroups>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vnni,f16c")]] void prepare(const std::byte* groups,
                                                                          std::size_t group_bytes,
                                                                          std::uint32_t n_rows,
                                                                          Part& part) {
  const std::size_t at = std::size_t{part.block} * group_format(kType).size_bytes();
  part.ahead_bytes = ahead_bytes(at, group_bytes);
  for (int g = 0; g < kGroups; ++g) part.groups[g] = groups + g * group_bytes + at;
  for (int g = 0; g < kGroups; ++g)
    prepare_factors<kType>(part.groups[g], part.scratch->factors[g]);
  for (std::uint32_t r = 0; r < n_rows; ++r)
    prepare_row<kType>(part.x[r], part.block, part.scratch->terms[r]);
}

/// Multiplies part by part. Each part is read from memory once: it stays in the L1 cache for later
/// passes, while the lines that a pass requested arrive from memory.
template <TensorType kType, int kGroups>
void dot_groups(const std::byte* groups, const Int8Tile& tile, GroupDots* out) {
  static_assert(group_format(kType).elements == kPartElements);
  const std::uint32_t n_blocks = tile.n_in / kPartElements;
  const std::uint32_t per_chunk = int8_chunk_blocks(n_blocks);
  const std::size_t group_bytes = row_group_bytes(kType, tile.n_in);
  const Passes passes = Passes::plan<kType, kGroups>(tile.n_rows);
  PartScratch scratch;
  Part part{.x = tile.x, .scratch = &scratch, .out = out};
  part.strip_bytes = strip_bytes(kType) / passes.count();
  for (std::uint32_t chunk = 0; chunk < n_blocks; chunk += per_chunk) {
    const std::uint32_t chunk_end = std::min(chunk + per_chunk, n_blocks);
    for (part.block = chunk; part.block < chunk_end; ++part.block) {
      part.begins_chunk = part.block == chunk;
      part.ends_chunk = part.block + 1 == chunk_end;
      part.is_first_chunk = chunk == 0;
      prepare<kType, kGroups>(groups, group_bytes, tile.n_rows, part);
      passes.run(part, kPartStrips * part.strip_bytes);
    }
  }
}

}  // namespace

void dot_groups_int8(const Int8Tile& tile) {
  const std::uint64_t group_bytes = row_group_bytes(tile.type, tile.n_in);
  visit_group_type(tile.type, [&]<TensorType kType> {
    std::uint32_t g = 0;
    if constexpr (group_format(kType).has_sub_blocks()) {
      if (tile.n_rows >= kRowsOfPairs)
        for (; g + 2 <= tile.n_groups; g += 2)
          dot_groups<kType, 2>(tile.groups + g * group_bytes, tile, tile.out + g);
      for (; g < tile.n_groups; ++g)
        dot_groups<kType, 1>(tile.groups + g * group_bytes, tile, tile.out + g);
    } else {
      if (tile.n_rows >= kLeastChunkRows<2>)
        for (; g + 2 <= tile.n_groups; g += 2)
          dot_chunks<kType, 2>(tile.groups + g * group_bytes, tile, tile.out + g);
      for (; g < tile.n_groups; ++g)
        dot_chunks<kType, 1>(tile.groups + g * group_bytes, tile, tile.out + g);
    }
  });
}

/// One store per row, because a line that is not in the cache keeps each of its stores waiting.
[[gnu::target("avx512f")]] void store_dots(const DotStore& store) {
  const __m512 bias = store.bias != nullptr ? _mm512_loadu_ps(store.bias) : _mm512_setzero_ps();
  for (std::uint32_t i = 0; i < store.n_rows; ++i) {
    float* out = store.out + i * store.stride;
    __m512 products = _mm512_loadu_ps((*store.dots)[i]);
    if (store.bias != nullptr) products = _mm512_add_ps(products, bias);
    if (store.accumulate) products = _mm512_add_ps(_mm512_loadu_ps(out), products);
    _mm512_storeu_ps(out, products);
  }
}

}  // namespace leasehold::avx512
