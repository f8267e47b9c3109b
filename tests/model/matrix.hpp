/// Shared parts of the tests of whole models: their files, and the same-bits matrix.
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "common/random.hpp"
#include "tests/model/expected_bits.hpp"
#include "tests/model/same_bits.hpp"
#include "tests/support/gguf_builder.hpp"
#include "tests/support/test_paths.hpp"
#include "tests/support/test_seed.hpp"

namespace leasehold::testing {

/// A model of kExpectedArchitectureBits.
inline std::string architecture_file(std::string_view name) {
  return "models-2026/" + std::string(name) + ".gguf";
}
inline std::string architecture_model(std::string_view name) {
  return test_data_path(architecture_file(name));
}
/// Rows of kExpectedArchitectureBits whose model is there. Those of DeepSeek and Gemma 4 (9.7 MB)
/// are not in tests/data.
inline std::vector<ExpectedBits> expected_architectures() {
  std::vector<ExpectedBits> rows;
  for (const ExpectedBits& row : kExpectedArchitectureBits) {
    const bool may_be_absent = row.model.contains("deepseek2") || row.model.contains("gemma4");
    if (!may_be_absent || !test_data(architecture_file(row.model)).empty()) rows.push_back(row);
  }
  return rows;
}
inline std::string matrix_model(std::string_view name) {
  if (name == "own") return bundled_model_path();
  const std::string path = test_data_path("models/" + std::string(name) + ".gguf");
  return path.empty() ? architecture_model(name) : path;
}

/// Arbitrary but fixed tokens below `n_vocab`.
inline std::vector<TokenId> matrix_text_below(TokenId n_vocab, std::uint32_t n) {
  std::vector<TokenId> tokens{1};
  for (std::uint32_t i = 1; i < n; ++i)
    tokens.push_back(static_cast<TokenId>(random_at(20, i) % static_cast<std::uint64_t>(n_vocab)));
  return tokens;
}
/// The text of the models with 512 tokens.
inline std::vector<TokenId> matrix_text(std::uint32_t n) {
  return matrix_text_below(512, n);
}
inline constexpr std::uint32_t kMatrixTokens = 40;

/// The arithmetic of a row of kExpectedArchitectureBits.
inline Arithmetic arithmetic_of(const ExpectedBits& row) {
  return row.model.ends_with("-f32") ? Arithmetic::F32 : Arithmetic::Int8;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// The model of the matrix. The heads of the bundled one are too narrow for Q8_0.
inline std::string model_for(KvType kv_type) {
  return kv_type == KvType::Q8_0 ? matrix_model("kq-llama-q4_k_m") : bundled_model_path();
}

/// The bits of the matrix' model, serial, once per kv type, arithmetic and adapter.
inline const std::vector<float>& serial_bits(KvType kv_type,
                                             Arithmetic arithmetic = Arithmetic::F32,
                                             bool has_adapter = false) {
  static std::map<std::tuple<KvType, Arithmetic, bool>, std::vector<float>> known;
  std::vector<float>& bits = known[{kv_type, arithmetic, has_adapter}];
  if (bits.empty())
    bits = compute_logits(model_for(kv_type), matrix_text(kMatrixTokens),
                          {.kv_type = kv_type,
                           .arithmetic = arithmetic,
                           .chunking = Chunking::OneByOne,
                           .has_adapter = has_adapter});
  return bits;
}

inline void check_variant(const Variant& variant) {
  INFO(describe(variant));
  const auto bits = compute_logits(model_for(variant.kv_type), matrix_text(kMatrixTokens), variant);
  CHECK(same_bits(bits, serial_bits(variant.kv_type, variant.arithmetic, variant.has_adapter)));
}

}  // namespace leasehold::testing
