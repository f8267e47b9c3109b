#include "tests/support/generated_model.hpp"

#include <span>
#include <stdexcept>

#include "tools/make_model/write_model.hpp"

namespace leasehold::testing {

make_model::ModelRequest request_for(const Family& family) {
  make_model::ModelRequest request{.architecture = family.architecture,
                                   .shape = {.layers = family.layers,
                                             .embd = 64,
                                             .heads = 4,
                                             .kv_heads = 2,
                                             .ffn = family.ffn,
                                             .vocab = 512,
                                             .context = family.context,
                                             .tied = family.tied,
                                             .head_width = family.head_dim,
                                             .dense_layers = family.dense_layers,
                                             .rope_width = family.rope_dim,
                                             .window = family.window},
                                   .layer_shape = {.window_head_width = family.window_head_dim,
                                                   .shared_layers = family.shared_layers,
                                                   .layer_embd = family.layer_embd},
                                   .latent_shape = {.rank = family.latent_rank,
                                                    .has_direct_queries = family.has_direct_queries,
                                                    .has_fused_heads = family.has_fused_heads},
                                   .state = {.key_size = family.state_size,
                                             .groups = family.state_groups,
                                             .heads = family.state_heads},
                                   .type = family.type,
                                   .is_mix = family.is_mix,
                                   .seed = 11,
                                   .rope = family.rope,
                                   .parts = family.parts,
                                   .vocabulary = family.vocabulary,
                                   .has_optional = family.has_optional};
  if (family.with_experts) {
    request.shape.experts = 8;
    request.shape.experts_used = 3;
    request.shape.expert_ffn = 64;
  }
  return request;
}

const Family& family_named(std::string_view name) {
  for (const std::span<const Family> families :
       {std::span<const Family>(kFamilies), std::span<const Family>(kRecurrentFamilies)})
    for (const Family& family : families)
      if (family.name == name) return family;
  throw std::runtime_error("unknown model family: " + std::string(name));
}

GeneratedModel::GeneratedModel(const Family& family) {
  const std::string asked = folder_.file("m.gguf");
  const auto written = make_model::write_model(request_for(family), asked, [](auto, auto) {});
  if (!written) throw std::runtime_error(written.error().detail);
  path_ = make_model::part_path(asked, family.parts - 1, family.parts);
}

}  // namespace leasehold::testing
