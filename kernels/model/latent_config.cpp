#include "kernels/model/latent_config.hpp"

#include "kernels/model/architecture_keys.hpp"
#include "kernels/model/rope_config.hpp"
#include "kernels/numerics/log.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kMaxLatentDim = 1024;
constexpr std::uint32_t kMaxQueryRank = 1u << 16;

/// Checks a key whose value follows from others.
Result<void> expect_count(const ArchitectureKeys& keys, std::string_view suffix,
                          std::uint32_t expected) {
  const auto value = TRY(keys.count_or(suffix, kMaxLatentDim, expected));
  if (value == expected) return {};
  return keys.corrupt("{} is {}; the other dimensions of latent attention make it {}",
                      keys.key(suffix), value, expected);
}

}  // namespace

Result<std::uint32_t> read_rotated_dim(const ArchitectureKeys& keys) {
  return keys.count("rope.dimension_count", kMaxLatentDim);
}

Result<LatentConfig> read_latent(const GgufFile& file, const ArchitectureKeys& keys) {
  constexpr std::string_view kHeadDim = "attention.key_length_mla";
  if (!keys.has(kHeadDim))
    return keys.unsupported(
        "has no {}, so keys and values share the tensor attn_kv_b; convert the model again with a "
        "llama.cpp that writes attn_k_b and attn_v_b",
        keys.key(kHeadDim));
  LatentConfig latent;
  latent.rank = TRY(keys.count("attention.kv_lora_rank", kMaxLatentDim));
  // Files that compute queries directly may have the key as well.
  if (file.find("blk.0.attn_q.weight") == nullptr)
    latent.query_rank = TRY(keys.count("attention.q_lora_rank", kMaxQueryRank));
  const auto rotated = TRY(read_rotated_dim(keys));
  const auto head_dim = TRY(keys.count(kHeadDim, kMaxLatentDim));
  if (head_dim <= rotated)
    return keys.corrupt("{} is {}; it must be above {}, the rotated elements", keys.key(kHeadDim),
                        head_dim, rotated);
  latent.unrotated_dim = head_dim - rotated;
  latent.value_dim = TRY(keys.count("attention.value_length_mla", kMaxLatentDim));
  TRY(expect_count(keys, "attention.key_length", latent.rank + rotated));
  TRY(expect_count(keys, "attention.value_length", latent.rank));
  TRY(expect_count(keys, "attention.head_count_kv", 1));
  return latent;
}

Result<float> adapt_magnitude(const ArchitectureKeys& keys, RopeConfig& rope) {
  if (rope.scaling == RopeScaling::None) return rope.magnitude * rope.magnitude;
  if (rope.scaling != RopeScaling::Yarn || rope.yarn.extrapolation == 0.0)
    return keys.unsupported("{} is not yarn with {} above 0, the only scaling of latent attention",
                            keys.key("rope.scaling.type"),
                            keys.key("rope.scaling.yarn_ext_factor"));
  const double multiplier = 10 * rope.yarn.log_multiplier;
  const double growth = 0.1 * log_f64(rope.yarn.factor);
  const double factor = rope.magnitude * (1 + (multiplier > 0 ? multiplier : 1) * growth);
  if (multiplier > 0) rope.yarn.log_multiplier = 1;
  return static_cast<float>(factor * factor);
}

}  // namespace leasehold
