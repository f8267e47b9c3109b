/// Latent attention: every position stores one short vector, from which the keys and values of all
/// heads follow.
///
/// The forward pass never computes these keys and values. It multiplies the queries of a head by
/// the matrix of its keys, and the result of attention by the matrix of its values. So attention
/// has one key head, and its values are the first `rank` elements of the keys:
///
///   key   [rank + rotated]: norm(c), rotated part; both computed from x by attn_kv_a_mqa
///   query [rank + rotated]: attn_k_b[head] · unrotated part, rotated part
///   out   [value_dim]:      attn_v_b[head] · Σ weight · norm(c)
///
/// Source: DeepSeek-AI 2024 (V2), 2.1.2 and appendix C. Key names: GGUF.
#pragma once

#include <cstdint>

#include "common/result.hpp"

namespace leasehold {

class ArchitectureKeys;
class GgufFile;
struct RopeConfig;

struct LatentConfig {
  std::uint32_t rank = 0;           ///< Elements of a value in the cache; 0: no latent attention.
  std::uint32_t query_rank = 0;     ///< Queries follow from a vector this wide; 0: from x itself.
  std::uint32_t unrotated_dim = 0;  ///< Elements of a query head before its rotated ones.
  std::uint32_t value_dim = 0;      ///< Elements of a head behind its matrix of values.

  bool operator==(const LatentConfig&) const = default;
};

/// Reads the dimensions of a file with latent attention, whose keys have `rank` + `rotated`
/// elements. Errors: FileCorrupt and UnsupportedModel naming the key.
Result<LatentConfig> read_latent(const GgufFile& file, const ArchitectureKeys& keys);

/// The rotated elements of a head of such a file.
Result<std::uint32_t> read_rotated_dim(const ArchitectureKeys& keys);

/// Changes the magnitude of a rotation to that of latent attention, and returns the factor of
/// scores that corresponds to it.
///
/// With yarn, scores grow by (1 + 0.1 m ln factor)² and the rotation keeps the length of vectors; m
/// is ten times rope.scaling.yarn_log_multiplier. Without that key both the scores and the rotation
/// have the magnitude of yarn. rope.scaling.attn_factor multiplies the rotation and, squared, the
/// scores. Errors: UnsupportedModel for other scalings.
/// Source: llama.cpp, src/models/deepseek2.cpp.
Result<float> adapt_magnitude(const ArchitectureKeys& keys, RopeConfig& rope);

}  // namespace leasehold
