#include "kernels/model/latent_config.hpp"

#include <fmt/format.h>

#include "kernels/model/architecture_keys.hpp"
#include "kernels/model/architecture_tensors.hpp"
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

/// The keys of the widths of a head and of its values.
struct HeadKeys {
  std::string_view head_dim;
  std::string_view value_dim;
  bool are_of_fused_heads;
};

/// Files whose heads have keys and values in one tensor call these widths as other families do. In
/// later files these names have the widths of the cache.
HeadKeys head_keys(const GgufFile& file, const ArchitectureKeys& keys) {
  const HeadKeys later = {"attention.key_length_mla", "attention.value_length_mla", false};
  const bool has_fused_heads = file.find(fmt::format("blk.0.{}", kFusedKeysAndValues)) != nullptr;
  if (keys.has(later.head_dim) || !has_fused_heads) return later;
  return {"attention.key_length", "attention.value_length", true};
}

}  // namespace

Result<std::uint32_t> read_rotated_dim(const ArchitectureKeys& keys) {
  return keys.count("rope.dimension_count", kMaxLatentDim);
}

Result<LatentConfig> read_latent(const GgufFile& file, const ArchitectureKeys& keys) {
  const HeadKeys names = head_keys(file, keys);
  LatentConfig latent;
  latent.rank = TRY(keys.count("attention.kv_lora_rank", kMaxLatentDim));
  // Files that compute queries directly may have the key as well.
  if (file.find("blk.0.attn_q.weight") == nullptr)
    latent.query_rank = TRY(keys.count("attention.q_lora_rank", kMaxQueryRank));
  const auto rotated = TRY(read_rotated_dim(keys));
  const auto head_dim = TRY(keys.count(names.head_dim, kMaxLatentDim));
  if (head_dim <= rotated)
    return keys.corrupt("{} is {}; it must be above {}, the rotated elements",
                        keys.key(names.head_dim), head_dim, rotated);
  latent.unrotated_dim = head_dim - rotated;
  latent.value_dim = TRY(keys.count(names.value_dim, kMaxLatentDim));
  if (names.are_of_fused_heads) return latent;
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
