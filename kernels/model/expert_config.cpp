#include "kernels/model/expert_config.hpp"

#include <algorithm>
#include <string_view>

#include "kernels/model/architecture.hpp"
#include "kernels/model/architecture_keys.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kMaxExperts = 1024;

/// Reads whether the weights of the chosen experts are divided by their sum. Refuses what the
/// architecture's row does not describe.
Result<bool> read_weights_norm(const ArchitectureKeys& keys, const Architecture& architecture) {
  constexpr std::string_view kKey = "expert_weights_norm";
  const bool normalizes = architecture.normalize_expert_weights;
  const bool asked = TRY(keys.get_or<bool>(kKey, normalizes));
  if (asked == normalizes || architecture.reads_expert_weights_norm) return asked;
  return keys.unsupported("{} is {}; this build computes {} with the opposite", keys.key(kKey),
                          asked, architecture.name);
}

/// The gating of a file that does not name it.
ExpertGating default_gating(const Architecture& architecture, const ModelConfig& config) {
  const SigmoidModels& models = architecture.sigmoid_models;
  const bool is_one_of_them = config.n_vocab == models.n_vocab &&
                              config.n_layers >= models.least_layers &&
                              config.n_layers <= models.most_layers;
  return is_one_of_them ? ExpertGating::Sigmoid : architecture.expert_gating;
}

/// Reads the gating. Refuses what the architecture's row does not describe.
Result<ExpertGating> read_gating(const ArchitectureKeys& keys, const Architecture& architecture,
                                 const ModelConfig& config) {
  constexpr std::string_view kKey = "expert_gating_func";
  const auto asked = TRY(keys.get_or<std::uint32_t>(kKey, 0));
  if (asked == 0) return default_gating(architecture, config);
  const ExpertGating gating = asked == 2 ? ExpertGating::Sigmoid : ExpertGating::Softmax;
  const bool is_known = asked == 1 || asked == 2;
  if (is_known && (architecture.reads_expert_gating || gating == architecture.expert_gating))
    return gating;
  return keys.unsupported("{} is {}; this build computes {} with {}", keys.key(kKey), asked,
                          architecture.name,
                          architecture.reads_expert_gating ? "1, a softmax, or 2, a sigmoid"
                          : architecture.expert_gating == ExpertGating::Sigmoid ? "2, a sigmoid"
                                                                                : "1, a softmax");
}

/// Reads the groups of experts.
Result<void> read_groups(const ArchitectureKeys& keys, ExpertConfig& experts) {
  constexpr std::string_view kCount = "expert_group_count";
  constexpr std::string_view kUsed = "expert_group_used_count";
  if (TRY(keys.get_or<std::uint32_t>(kCount, 0)) <= 1) return {};
  experts.n_groups = TRY(keys.count(kCount, kMaxExpertGroups));
  experts.n_groups_used = TRY(keys.count(kUsed, kMaxExpertGroups));
  if (experts.n_experts % experts.n_groups != 0)
    return keys.corrupt("{}: {} experts do not divide into {} groups", keys.key(kCount),
                        experts.n_experts, experts.n_groups);
  const std::uint32_t reachable = experts.n_groups_used * (experts.n_experts / experts.n_groups);
  if (experts.n_groups_used > experts.n_groups || experts.n_used > reachable)
    return keys.corrupt("{} is {} of {} groups, for {} experts of a row", keys.key(kUsed),
                        experts.n_groups_used, experts.n_groups, experts.n_used);
  return {};
}

/// Reads the width of an expert. Older files do not name it: it is that of the tensors, or in files
/// with a tensor per expert that of a feed-forward.
Result<std::uint32_t> read_expert_width(const GgufFile& file, const ArchitectureKeys& keys,
                                        std::uint32_t n_ff) {
  constexpr std::string_view kKey = "expert_feed_forward_length";
  if (keys.has(kKey)) return keys.count(kKey, kMaxWidth);
  const auto down = std::ranges::find_if(file.tensors(), [](const GgufTensor& tensor) {
    return std::string_view(tensor.name).ends_with(".ffn_down_exps.weight");
  });
  const std::uint64_t width = down == file.tensors().end() ? n_ff : down->columns();
  if (width > 0 && width <= kMaxWidth) return static_cast<std::uint32_t>(width);
  return keys.count(kKey, kMaxWidth);
}

/// Whether a layer has a shared expert. Some files have neither of its keys.
bool has_shared_expert(const GgufFile& file) {
  return std::ranges::any_of(file.tensors(), [](const GgufTensor& tensor) {
    return std::string_view(tensor.name).ends_with(".ffn_up_shexp.weight");
  });
}

/// Reads the width of the shared expert, 0 without one. Some files have the width, others the
/// number of experts that it replaces. Without either it is as wide as a feed-forward.
Result<std::uint32_t> read_shared_width(const GgufFile& file, const ArchitectureKeys& keys,
                                        const Architecture& architecture, std::uint32_t expert_ff,
                                        std::uint32_t n_ff) {
  constexpr std::string_view kCount = "expert_shared_count";
  constexpr std::string_view kWidth = "expert_shared_feed_forward_length";
  if (!architecture.has_shared_expert) return 0;
  const auto count = TRY(keys.get_or<std::uint32_t>(kCount, 0));
  if (keys.has(kCount) && count == 0) return 0;
  if (TRY(keys.get_or<std::uint32_t>(kWidth, 0)) > 0) return keys.count(kWidth, kMaxWidth);
  if (count > 0) return TRY(keys.count(kCount, kMaxWidth / expert_ff)) * expert_ff;
  return has_shared_expert(file) ? n_ff : 0;
}

}  // namespace

Result<ExpertConfig> read_experts(const GgufFile& file, const ArchitectureKeys& keys,
                                  const Architecture& architecture, const ModelConfig& config,
                                  std::uint32_t n_ff) {
  ExpertConfig experts{};
  const bool supports_dense = !architecture.feed_forward.empty();
  if (supports_dense && TRY(keys.get_or<std::uint32_t>("expert_count", 0)) == 0) return experts;
  if (architecture.experts.empty())
    return keys.unsupported("{} has experts; this build computes that architecture without",
                            keys.key("expert_count"));
  experts.n_experts = TRY(keys.count("expert_count", kMaxExperts));
  experts.n_used = TRY(keys.count("expert_used_count", kMaxExperts));
  if (experts.n_used > experts.n_experts)
    return keys.corrupt("{} is {} of {} experts", keys.key("expert_used_count"), experts.n_used,
                        experts.n_experts);
  constexpr std::string_view kDense = "leading_dense_block_count";
  experts.n_dense_layers = TRY(keys.get_or<std::uint32_t>(kDense, 0));
  if (experts.n_dense_layers > config.n_layers)
    return keys.corrupt("{} is {} of {} layers", keys.key(kDense), experts.n_dense_layers,
                        config.n_layers);
  if (experts.n_dense_layers > 0 && !supports_dense)
    return keys.unsupported("{} is {}; this build computes {} with experts in every layer",
                            keys.key(kDense), experts.n_dense_layers, architecture.name);
  experts.n_ff = TRY(read_expert_width(file, keys, n_ff));
  experts.n_shared_ff = TRY(read_shared_width(file, keys, architecture, experts.n_ff, n_ff));
  TRY(read_groups(keys, experts));
  experts.normalize_expert_weights = TRY(read_weights_norm(keys, architecture));
  experts.gating = TRY(read_gating(keys, architecture, config));
  experts.are_beside_ff = architecture.has_experts_beside;
  experts.scale = TRY(keys.scale_or("expert_weights_scale", 1.0f));
  if (architecture.has_latent_experts && TRY(keys.get_or<std::uint32_t>(kLatentSize, 0)) > 0)
    experts.n_latent = TRY(keys.count(kLatentSize, kMaxWidth));
  return experts;
}

}  // namespace leasehold
