#include "kernels/cpu/avx2/dots.hpp"

#include <algorithm>
#include <utility>

#include "kernels/cpu/avx2/lanes.hpp"
#include "kernels/cpu/dot_weights.hpp"
#include "kernels/cpu/prefetch.hpp"

namespace leasehold::avx2 {
namespace {

/// Weight rows and inputs that are multiplied at once.
constexpr std::uint32_t kOutputsAtOnce = 3;
/// A tile with more inputs is limited by multiplications.
constexpr std::uint32_t kInputsAtOnce = 4;

/// How many of the four registers with the 32 lanes of a dot are summed at once. With twelve dots,
/// one register of each fills the register file, beside three weights and an input.
constexpr int parts_at_once(int dots) {
  return dots <= 3 ? 4 : dots <= 6 ? 2 : 1;
}

/// Returns how many elements of the rows are multiplied with all inputs of a tile before the next
/// elements: the chunks of six rows and of four inputs stay in the L1 cache meanwhile. Rows with
/// one input are read in order.
std::size_t chunk_of(const DotTile& tile) {
  const std::size_t most = tile.type == TensorType::F32 ? 640 : 1024;
  if (tile.n <= most || tile.n_inputs == 1) return tile.n;
  const std::size_t chunks = (tile.n + most - 1) / most;
  return ((tile.n + chunks - 1) / chunks + kSumLanes - 1) / kSumLanes * kSumLanes;
}

/// Elements [begin, begin + n) of a tile's rows and inputs.
struct Chunk {
  const DotTile& tile;
  std::size_t begin;
  std::size_t n;
  Lanes* lanes;  ///< [kDotOutputs, kDotInputs]: of the dots.

  bool is_first() const { return begin == 0; }
  bool is_last() const { return begin + n == tile.n; }  ///< Others have no tail.
};

/// Weight rows, inputs, and the lanes of their dots.
template <class Element, int kOutputs, int kInputs>
struct Operands {
  const Element* w[kOutputs];
  const float* x[kInputs];
  Lanes* lanes;  // of row o with input i: [o * kDotInputs + i]

  [[gnu::always_inline]] Operands(const Chunk& chunk, std::uint32_t output, std::uint32_t input)
      : lanes(chunk.lanes + std::size_t{output} * kDotInputs + input) {
#pragma GCC unroll 3
    for (int o = 0; o < kOutputs; ++o)
      w[o] = weights_as<Element>(chunk.tile, output + o) + chunk.begin;
#pragma GCC unroll 4
    for (int i = 0; i < kInputs; ++i) x[i] = chunk.tile.x[input + i] + chunk.begin;
  }
};

/// Requests of a tile with few inputs: those of the next rows.
class RowsAhead {
 public:
  RowsAhead(const DotTile& tile, std::uint32_t passes) : next_(tile, passes, tile.n_inputs == 1) {}
  [[gnu::always_inline]] void begin(const Chunk&, std::uint32_t, std::uint32_t, std::uint32_t) {}
  [[gnu::always_inline]] void step() { next_.step(); }

 private:
  NextRows next_;
};

/// Requests of a tile with many inputs. Each step of 32 elements requests one line of a later input
/// and, if kRows, its share of the next rows, because the L2 cache is slow with bursts.
template <bool kRows>
class LinesAhead {
 public:
  LinesAhead(const DotTile& tile, std::uint32_t passes) : row_(tile.next) {
    const std::size_t steps = std::max<std::size_t>(tile.n / kSumLanes * passes, 1);
    row_bytes_ = (tile.next_bytes + steps - 1) / steps;
  }
  /// Precedes the steps of part `part` of the lanes. One input is requested while two parts are
  /// summed: six rows request the next four.
  [[gnu::always_inline]] void begin(const Chunk& chunk, std::uint32_t output, std::uint32_t input,
                                    std::uint32_t part) {
    if (part % 2 != 0) return;
    const float* later = later_input(chunk, output / kOutputsAtOnce * 2 + part / 2, input);
    input_bytes_ = later != nullptr ? kCacheLineBytes : 0;
    input_ = reinterpret_cast<const std::byte*>(later != nullptr ? later : chunk.tile.x[input]);
  }
  [[gnu::always_inline]] void step() {
    __builtin_prefetch(input_);
    input_ += input_bytes_;
    if constexpr (!kRows) return;
    __builtin_prefetch(row_);
    row_ += row_bytes_;
  }

 private:
  /// The nth of the four inputs that are multiplied after those from `input` on, if any.
  static const float* later_input(const Chunk& chunk, std::uint32_t nth, std::uint32_t input) {
    const DotTile& tile = chunk.tile;
    if (nth >= kInputsAtOnce) return nullptr;
    if (input + kInputsAtOnce + nth < tile.n_inputs)
      return tile.x[input + kInputsAtOnce + nth] + chunk.begin;
    return chunk.is_last() ? tile.next_x[nth] : tile.x[nth] + chunk.begin + chunk.n;
  }

  const std::byte* input_ = nullptr;
  std::size_t input_bytes_ = 0;
  const std::byte* row_;
  std::size_t row_bytes_;
};

/// Adds the whole steps of 32 to kParts registers of each dot's lanes, from part `part` on.
template <int kParts, class Element, int kOutputs, int kInputs, class Ahead>
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline void add_products(
    const Chunk& chunk, const Operands<Element, kOutputs, kInputs>& of, std::uint32_t part,
    Ahead& ahead) {
  __m256 sums[kParts][kOutputs][kInputs];
#pragma GCC unroll 4
  for (int p = 0; p < kParts; ++p)
#pragma GCC unroll 3
    for (int o = 0; o < kOutputs; ++o)
#pragma GCC unroll 4
      for (int i = 0; i < kInputs; ++i)
        sums[p][o][i] =
            chunk.is_first() ? _mm256_setzero_ps() : of.lanes[o * kDotInputs + i].part[part + p];
  Ahead requests = ahead;
  const std::size_t end = chunk.n / kSumLanes * kSumLanes;
  for (std::size_t at = part * kWidth; at < end; at += kSumLanes) {
    requests.step();
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p) {
      __m256 weights[kOutputs];
#pragma GCC unroll 3
      for (int o = 0; o < kOutputs; ++o) weights[o] = load8(of.w[o] + at + p * kWidth);
#pragma GCC unroll 4
      for (int i = 0; i < kInputs; ++i) {
        const __m256 input = load8(of.x[i] + at + p * kWidth);
#pragma GCC unroll 3
        for (int o = 0; o < kOutputs; ++o)
          sums[p][o][i] = _mm256_fmadd_ps(weights[o], input, sums[p][o][i]);
      }
    }
  }
  ahead = requests;
#pragma GCC unroll 4
  for (int p = 0; p < kParts; ++p)
#pragma GCC unroll 3
    for (int o = 0; o < kOutputs; ++o)
#pragma GCC unroll 4
      for (int i = 0; i < kInputs; ++i) of.lanes[o * kDotInputs + i].part[part + p] = sums[p][o][i];
}

/// The steps + 16 and + 8 of the fold.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 fold_to_eight(
    const Lanes& lanes) {
  return _mm256_add_ps(_mm256_add_ps(lanes.part[0], lanes.part[2]),
                       _mm256_add_ps(lanes.part[1], lanes.part[3]));
}

/// The step + 4 of the fold, which leaves one dot per half.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m256 fold_halves(__m256 a, __m256 b) {
  return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
}

/// Four dots, folded together: a transposition that adds at each of its steps.
[[gnu::always_inline, gnu::target("avx2,fma,f16c")]] inline __m128 fold_four(const Lanes* lanes) {
  const __m256 even = fold_halves(fold_to_eight(lanes[0]), fold_to_eight(lanes[2]));
  const __m256 odd = fold_halves(fold_to_eight(lanes[1]), fold_to_eight(lanes[3]));
  // The steps + 2 and + 1, within halves.
  const __m256 pairs =
      _mm256_add_ps(_mm256_shuffle_ps(even, odd, 0x44), _mm256_shuffle_ps(even, odd, 0xEE));
  const __m256 dots =
      _mm256_add_ps(_mm256_shuffle_ps(pairs, pairs, 0x88), _mm256_shuffle_ps(pairs, pairs, 0xDD));
  return _mm_movelh_ps(_mm256_castps256_ps128(dots), _mm256_extractf128_ps(dots, 1));
}

/// Adds a chunk to the dots of kOutputs weight rows from `output` on with kInputs inputs from
/// `input` on.
template <class Element, int kOutputs, int kInputs, class Ahead>
[[gnu::target("avx2,fma,f16c")]] void dot_block(const Chunk& chunk, std::uint32_t output,
                                                std::uint32_t input, Ahead& ahead) {
  constexpr int kParts = parts_at_once(kOutputs * kInputs);
  const Operands<Element, kOutputs, kInputs> of(chunk, output, input);
  for (std::uint32_t part = 0; part < 4; part += kParts) {
    ahead.begin(chunk, output, input, part);
    add_products<kParts>(chunk, of, part, ahead);
  }
}

template <class Element, int kOutputs, class Ahead>
[[gnu::target("avx2,fma,f16c")]] void dot_inputs(const Chunk& chunk, std::uint32_t output,
                                                 std::uint32_t input, Ahead& ahead) {
  switch (chunk.tile.n_inputs - input) {
    case 1:
      return dot_block<Element, kOutputs, 1>(chunk, output, input, ahead);
    case 2:
      return dot_block<Element, kOutputs, 2>(chunk, output, input, ahead);
    case 3:
      return dot_block<Element, kOutputs, 3>(chunk, output, input, ahead);
    default:
      return dot_block<Element, kOutputs, kInputsAtOnce>(chunk, output, input, ahead);
  }
}

/// Adds a chunk to all dots of a tile. With one input, memory is the limit, and memory is fastest
/// when rows are read one after the other.
template <class Element, class Ahead>
[[gnu::target("avx2,fma,f16c")]] void dot_chunk(const Chunk& chunk, Ahead& ahead) {
  const auto [n_inputs, n_outputs] = std::pair(chunk.tile.n_inputs, chunk.tile.n_outputs);
  for (std::uint32_t i = 0; i < n_inputs; i += kInputsAtOnce) {
    std::uint32_t o = 0;
    for (; n_inputs > 1 && o + kOutputsAtOnce <= n_outputs; o += kOutputsAtOnce)
      dot_inputs<Element, kOutputsAtOnce>(chunk, o, i, ahead);
    for (; o < n_outputs; ++o) dot_inputs<Element, 1>(chunk, o, i, ahead);
  }
}

/// How often dots go through the elements of a tile's rows.
std::uint32_t passes_of(const DotTile& tile) {
  constexpr std::uint32_t kPassesOfLeft[] = {0, 1, 2, 4};
  const std::uint32_t outputs = tile.n_inputs == 1 ? 1 : kOutputsAtOnce;
  return (tile.n_inputs / kInputsAtOnce * 4 + kPassesOfLeft[tile.n_inputs % kInputsAtOnce]) *
         ((tile.n_outputs + outputs - 1) / outputs);
}

/// Adds the elements after the last whole step to the lanes.
[[gnu::target("avx2,fma,f16c")]] void add_tails(const DotTile& tile, Lanes* lanes) {
  const std::size_t tail = tile.n % kSumLanes;
  const std::size_t whole = tile.n - tail;
  with_element_of(tile.type, [&]<class Element>(std::type_identity<Element>) {
    for (std::uint32_t o = 0; o < tile.n_outputs; ++o)
      for (std::uint32_t i = 0; i < tile.n_inputs; ++i)
        add_tail(lanes[o * kDotInputs + i], weights_as<Element>(tile, o) + whole, tile.x[i] + whole,
                 tail);
  });
}

/// Folds the lanes of all dots. Folding them after each block would wait for its last products.
[[gnu::target("avx2,fma,f16c")]] void fold_dots(const DotTile& tile, const Lanes* lanes,
                                                DotProducts& out) {
  for (std::uint32_t o = 0; o < tile.n_outputs; ++o, lanes += kDotInputs) {
    float* to = &out[o / kDotOutputGroup][0][o % kDotOutputGroup];
    std::uint32_t i = 0;
    for (; i + 4 <= tile.n_inputs; i += 4, to += 4 * kDotOutputGroup) {
      const __m128 dots = fold_four(lanes + i);
      _mm_store_ss(to, dots);
      _mm_store_ss(to + kDotOutputGroup, _mm_movehdup_ps(dots));
      const __m128 upper = _mm_movehl_ps(dots, dots);
      _mm_store_ss(to + 2 * kDotOutputGroup, upper);
      _mm_store_ss(to + 3 * kDotOutputGroup, _mm_movehdup_ps(upper));
    }
    for (; i < tile.n_inputs; ++i, to += kDotOutputGroup) *to = fold(lanes[i]);
  }
}

/// Adds the chunks of a tile. `ahead` requests what is read later.
template <class Ahead>
[[gnu::target("avx2,fma,f16c")]] void dot_chunks(const DotTile& tile, Ahead ahead,
                                                 DotProducts& out) {
  Lanes lanes[kDotOutputs * kDotInputs];
  const std::size_t length = chunk_of(tile);
  std::size_t begin = 0;
  do {
    const Chunk chunk{tile, begin, std::min(length, tile.n - begin), lanes};
    with_element_of(tile.type, [&]<class Element>(std::type_identity<Element>) {
      dot_chunk<Element>(chunk, ahead);
    });
    begin += chunk.n;
  } while (begin < tile.n);
  if (tile.n % kSumLanes != 0) add_tails(tile, lanes);
  fold_dots(tile, lanes, out);
}

}  // namespace

void dot_tile(const DotTile& tile, DotProducts& out) {
  const std::uint32_t passes = passes_of(tile);
  if (tile.n_inputs <= kInputsAtOnce) return dot_chunks(tile, RowsAhead(tile, passes), out);
  if (tile.next_bytes > 0) return dot_chunks(tile, LinesAhead<true>(tile, passes), out);
  dot_chunks(tile, LinesAhead<false>(tile, passes), out);
}

}  // namespace leasehold::avx2
