/// The memory of a transformer: its limits, its scratch, the logits that it leaves there.
#include <algorithm>
#include <utility>

#include "kernels/model/kv_type.hpp"
#include "worker/model/row_range.hpp"
#include "worker/model/transformer.hpp"

namespace leasehold {

BackendLimits Transformer::backend_limits(const ModelConfig& config, const Limits& limits) {
  const LatentConfig& latent = config.latent;
  const std::uint32_t attention =
      std::max({attention_width(config), latent.rank, latent.query_rank, latent.unrotated_dim});
  const std::uint32_t ff_width = std::max(common_ff(config), config.experts.n_ff);
  // A matrix per head is multiplied as a matrix per expert.
  const std::uint32_t head_matrices = latent.rank > 0 ? config.n_heads : 0;
  const std::uint32_t mixer_width = mixer_gate_width(config);
  return {.max_rows = limits.max_rows,
          .max_context = config.n_context,
          .n_heads = config.n_heads,
          .head_dim = config.head_dim,
          .max_width = std::max({config.n_embd, ff_width, attention, config.n_layer_embd,
                                 mixer_width, config.experts.n_latent}),
          .n_experts = std::max(config.experts.n_experts, head_matrices),
          .n_experts_used = std::max(config.experts.n_used, head_matrices),
          .max_logit_rows = limits.max_logit_rows,
          .rope_dim = std::max(config.rope.dim, config.window_rope ? config.window_rope->dim : 0),
          .n_vocab = config.n_vocab,
          .n_kv_groups = leasehold::kv_layout(config, KvType::F32).n_groups(),
          .state_blocks = most_state_blocks(config),
          .state_key_dim = config.recurrent.key_dim,
          .adapter_slots = limits.max_adapter_rank > 0 ? config.n_layers * kAdapterTargets : 0,
          .scratch_bytes = step_buffer_bytes(config, limits)};
}

Transformer::Transformer(const ModelConfig& config, KvType kv_type, Limits limits, Backend& backend)
    : config_(config),
      kv_layout_(leasehold::kv_layout(config, kv_type)),
      state_layout_(leasehold::state_layout(config, kv_layout_)),
      limits_(limits),
      backend_(&backend),
      most_between_(max_row_gap(backend.units_run().size())),
      angles_(config.rope, config.n_context, limits.max_rows),
      query_scales_(config.rope.query_temperature.growth > 0 ? limits.max_rows : 0) {
  if (config.window_rope)
    window_angles_.emplace(*config.window_rope, config.n_context, limits.max_rows);
  scratch_.each(config, limits, [&]<class T>(T*& pointer, std::size_t elements) {
    pointer = reinterpret_cast<T*>(backend.allocate_scratch(elements * sizeof(T)));
  });
}

std::span<const float> Transformer::AngleTable::fill(std::span<const RowRef> rows) {
  fill_rope_cos_sin(rows, angles, cos_sin.data());
  return {cos_sin.data(), rows.size() * angles.frequencies.size() * 2};
}

std::span<const float> Transformer::logits(std::uint32_t i) const {
  return backend_->fetch(scratch_.logits + std::size_t{i} * config_.n_vocab, config_.n_vocab);
}

std::span<const float> Transformer::hidden(std::uint32_t first_row, std::uint32_t count) const {
  return backend_->fetch(scratch_.normed + std::size_t{first_row} * config_.n_embd,
                         std::size_t{count} * config_.n_embd);
}

void Transformer::scrub() {
  const Limits used = std::exchange(used_, {0, 0});
  scratch_.each(config_, used, [&](auto* pointer, std::size_t elements) {
    backend_->clear_scratch(reinterpret_cast<std::byte*>(pointer), elements * sizeof *pointer);
  });
  backend_->clear_workspace();
}

}  // namespace leasehold
