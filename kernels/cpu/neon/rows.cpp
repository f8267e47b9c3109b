#include "kernels/cpu/neon/rows.hpp"

#include "kernels/cpu/dot_weights.hpp"
#include "kernels/cpu/neon/lanes.hpp"

namespace leasehold::neon {
namespace {

/// Weight rows and inputs that are multiplied at once.
constexpr std::uint32_t kOutputsAtOnce = 3;
constexpr std::uint32_t kInputsAtOnce = 4;

/// How many registers of each dot are summed at once: 24 sums leave registers for weights and
/// inputs.
constexpr int parts_at_once(int dots) {
  return dots <= 3 ? 8 : dots <= 6 ? 4 : 2;
}

/// Weight rows, inputs, and the lanes of their dots.
template <class Element, int kOutputs, int kInputs>
struct Operands {
  const Element* w[kOutputs];
  const float* x[kInputs];
  Lanes lanes[kOutputs][kInputs];
};

/// Adds the first n elements, whole steps of 32, to kAtOnce registers of each dot's lanes, from
/// register `part` on.
template <int kAtOnce, class Element, int kOutputs, int kInputs>
[[gnu::always_inline]] inline void add_products(Operands<Element, kOutputs, kInputs>& to,
                                                std::size_t n, int part) {
  float32x4_t sums[kAtOnce][kOutputs][kInputs] = {};
  for (std::size_t at = std::size_t(part) * kWidth; at < n; at += kSumLanes) {
#pragma GCC unroll 8
    for (int p = 0; p < kAtOnce; ++p) {
      float32x4_t weights[kOutputs];
#pragma GCC unroll 3
      for (int o = 0; o < kOutputs; ++o) weights[o] = load4(to.w[o] + at + p * kWidth);
#pragma GCC unroll 4
      for (int i = 0; i < kInputs; ++i) {
        const float32x4_t input = load4(to.x[i] + at + p * kWidth);
#pragma GCC unroll 3
        for (int o = 0; o < kOutputs; ++o)
          sums[p][o][i] = vfmaq_f32(sums[p][o][i], weights[o], input);
      }
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < kAtOnce; ++p)
#pragma GCC unroll 3
    for (int o = 0; o < kOutputs; ++o)
#pragma GCC unroll 4
      for (int i = 0; i < kInputs; ++i) to.lanes[o][i][part + p] = sums[p][o][i];
}

/// Computes the dots of kOutputs weight rows from `output` on with kInputs inputs from `input` on.
template <class Element, int kOutputs, int kInputs>
void dot_block(const DotTile& tile, std::uint32_t output, std::uint32_t input, DotProducts& out) {
  constexpr int kAtOnce = parts_at_once(kOutputs * kInputs);
  Operands<Element, kOutputs, kInputs> to;
  for (int o = 0; o < kOutputs; ++o) to.w[o] = weights_as<Element>(tile, output + o);
  for (int i = 0; i < kInputs; ++i) to.x[i] = tile.x[input + i];
  const std::size_t whole = tile.n / kSumLanes * kSumLanes;
  for (int part = 0; part < kParts; part += kAtOnce) add_products<kAtOnce>(to, whole, part);
  for (int o = 0; o < kOutputs; ++o)
    for (int i = 0; i < kInputs; ++i)
      out[(output + o) / kDotOutputGroup][input + i][(output + o) % kDotOutputGroup] =
          fold_with_tail(to.lanes[o][i], to.w[o] + whole, to.x[i] + whole, tile.n - whole);
}

template <class Element, int kOutputs>
void dot_outputs(const DotTile& tile, std::uint32_t output, DotProducts& out) {
  for (std::uint32_t i = 0; i < tile.n_inputs; i += kInputsAtOnce) {
    switch (tile.n_inputs - i) {
      case 1:
        dot_block<Element, kOutputs, 1>(tile, output, i, out);
        break;
      case 2:
        dot_block<Element, kOutputs, 2>(tile, output, i, out);
        break;
      case 3:
        dot_block<Element, kOutputs, 3>(tile, output, i, out);
        break;
      default:
        dot_block<Element, kOutputs, kInputsAtOnce>(tile, output, i, out);
    }
  }
}

}  // namespace

void dot_tile(const DotTile& tile, DotProducts& out) {
  with_element_of(tile.type, [&]<class Element>(std::type_identity<Element>) {
    std::uint32_t o = 0;
    for (; o + kOutputsAtOnce <= tile.n_outputs; o += kOutputsAtOnce)
      dot_outputs<Element, kOutputsAtOnce>(tile, o, out);
    for (; o < tile.n_outputs; ++o) dot_outputs<Element, 1>(tile, o, out);
  });
}

}  // namespace leasehold::neon
