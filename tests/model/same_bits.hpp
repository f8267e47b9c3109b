/// The logits of one sequence, computed in any batch and by any path: a *variant*. All variants
/// give the same committed bits (expected_bits.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/checks/local_model/local_model.hpp"

namespace leasehold::testing {

/// How a prompt is divided into steps. With Halving each step takes half of what is left: many
/// rows, few, and at the end one.
enum class Chunking : std::uint8_t { OneByOne, Whole, Sixteens, Halving, Random };
inline constexpr std::uint64_t kChunkings = 5;

struct Variant {
  LocalPlacement* placement = nullptr;  ///< A card; null: the host, with the next three.
  bool reference = false;  ///< The reference backend; else the CPU backend with the next two.
  SimdPath simd = best_simd_path();
  std::uint32_t threads = 1;
  KvType kv_type = KvType::F16;
  Arithmetic arithmetic = Arithmetic::F32;
  std::uint32_t batch = 1;        ///< Sequences in every step.
  std::uint32_t batch_index = 0;  ///< Index of our sequence in the batch.
  Chunking chunking = Chunking::Whole;
  bool scattered = false;  ///< Blocks in random order instead of one sequence after another.
  std::uint64_t seed = 1;  ///< Seed for every random choice.
  /// The other sequences have no adapter, or one of two. The adapters are random, on all weights.
  bool beside_adapters = false;
  bool has_adapter = false;  ///< Our sequence has the first one.
};

std::string describe(const Variant& variant);

/// The logits after every token, [tokens, n_vocab]. The other sequences have other texts, positions
/// and chunks.
std::vector<float> compute_logits(const std::string& model_path, const std::vector<TokenId>& tokens,
                                  const Variant& variant);

/// SHA-256 of the numbers' little-endian bits, in hex.
std::string bits_digest(const std::vector<float>& numbers);

}  // namespace leasehold::testing
