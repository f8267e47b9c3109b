/// Tiles of dots in f32 arithmetic: every path has the bits of the written order.
#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "kernels/cpu/dot_weights.hpp"
#include "kernels/cpu/row_kernels.hpp"
#include "kernels/numerics/ordered_sum.hpp"
#include "tests/support/random_blocks.hpp"
#include "tests/support/test_seed.hpp"

namespace leasehold::testing {
namespace {

constexpr float kNoDot = 12345.0F;

/// A full tile: random weight rows and inputs, and their dots in the written order.
struct DotTileCase {
  DotTileCase(SeededRandom& random, TensorType of, std::uint32_t n) : type(of), n_in(n) {
    const std::uint32_t size_bytes = block_shape(type).size_bytes;
    weights.resize(std::size_t{kDotOutputs} * n * size_bytes);
    for (std::size_t at = 0; at < weights.size(); at += size_bytes)
      fill_block(random, type, weights.data() + at);
    x = random_floats(random, std::size_t{kDotInputs} * n);
    whole = tile(kDotOutputs, kDotInputs, false);
    with_element_of(whole.type, [&]<class Element>(std::type_identity<Element>) {
      for (std::uint32_t i = 0; i < kDotInputs; ++i)
        for (std::uint32_t o = 0; o < kDotOutputs; ++o)
          written[o / kDotOutputGroup][i][o % kDotOutputGroup] =
              ordered_dot(weights_as<Element>(whole, o), whole.x[i], n);
    });
  }

  DotTile tile(std::uint32_t n_outputs, std::uint32_t n_inputs, bool requests) const {
    DotTile tile{};
    tile.type = type;
    tile.n_outputs = n_outputs;
    tile.n_inputs = n_inputs;
    tile.n = n_in;
    const std::size_t row_bytes = std::size_t{n_in} * block_shape(type).size_bytes;
    for (std::uint32_t o = 0; o < n_outputs; ++o) tile.weights[o] = weights.data() + o * row_bytes;
    for (std::uint32_t i = 0; i < n_inputs; ++i) tile.x[i] = x.data() + std::size_t{i} * n_in;
    if (!requests) return tile;
    tile.next = weights.data();
    tile.next_bytes = n_outputs * row_bytes;
    std::ranges::fill(tile.next_x, x.data());
    return tile;
  }

  /// [n_inputs, n_outputs]
  std::vector<float> dots(SimdPath path, std::uint32_t n_outputs, std::uint32_t n_inputs) const {
    const auto compute = [&](bool requests) {
      DotProducts out;
      std::fill_n(&out[0][0][0], sizeof out / sizeof(float), kNoDot);
      row_kernels(path).dot_tile(tile(n_outputs, n_inputs, requests), out);
      return part(out, n_outputs, n_inputs);
    };
    std::vector<float> computed = compute(false);
    REQUIRE((compute(true) == computed));  // requests change no bit
    return computed;
  }

  static std::vector<float> part(const DotProducts& dots, std::uint32_t n_outputs,
                                 std::uint32_t n_inputs) {
    std::vector<float> some;
    for (std::uint32_t i = 0; i < n_inputs; ++i)
      for (std::uint32_t o = 0; o < n_outputs; ++o)
        some.push_back(dots[o / kDotOutputGroup][i][o % kDotOutputGroup]);
    return some;
  }

  TensorType type;
  std::uint32_t n_in;
  std::vector<std::byte> weights;  // [kDotOutputs, n_in]
  std::vector<float> x;            // [kDotInputs, n_in]
  DotTile whole;
  DotProducts written;
};

/// Rows that are shorter than a step, with and without a tail, as long as a chunk of F32 (1024) or
/// of halves (1632), and of two and more chunks.
constexpr std::uint32_t kDotWidths[] = {1,    31,   32,   64,   287,  896, 1000,
                                        1024, 1025, 1632, 1650, 3300, 4864};
constexpr std::uint32_t kOutputCounts[] = {1, 2, 3, 5, 6, 7, 9, 11, 12};
constexpr std::uint32_t kInputCounts[] = {1, 2, 3, 4, 5, 7, 8, 10, 11, 12};

}  // namespace

TEST_CASE("dot tiles: every path has the bits of the written order, for any rows and inputs") {
  SeededRandom random(test_seed());
  CAPTURE(test_seed());
  for (const TensorType type : {TensorType::F32, TensorType::F16, TensorType::BF16}) {
    for (const std::uint32_t n : kDotWidths) {
      const DotTileCase tile(random, type, n);
      for (const std::uint32_t n_outputs : kOutputCounts) {
        for (const std::uint32_t n_inputs : kInputCounts) {
          const std::vector<float> written = DotTileCase::part(tile.written, n_outputs, n_inputs);
          for (const SimdPath path : kSimdPaths) {
            if (!cpu_has(path)) continue;
            CAPTURE(name(path), name(type), n, n_outputs, n_inputs);
            REQUIRE(first_difference(tile.dots(path, n_outputs, n_inputs), written) == -1);
          }
        }
      }
    }
  }
}

}  // namespace leasehold::testing
