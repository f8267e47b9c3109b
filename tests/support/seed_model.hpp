/// The smallest model of each architecture with all that its files may have: a seed for fuzzing,
/// and the file whose keys a test changes.
#pragma once

#include "kernels/model/architecture.hpp"
#include "tools/make_model/model_shape.hpp"

namespace leasehold::testing {

inline make_model::ModelRequest seed_request(const Architecture& row) {
  using make_model::Rope;
  constexpr Rope kRopes[] = {Rope::Plain, Rope::Linear, Rope::Yarn, Rope::Divisors};
  make_model::ModelRequest request{.architecture = row.name,
                                   .shape = {.layers = 2,
                                             .embd = 8,
                                             .heads = 2,
                                             .kv_heads = 1,
                                             .ffn = 8,
                                             .vocab = 259,
                                             .context = 64,
                                             .tied = true,
                                             .head_width = 4},
                                   .state = {.key_size = 4, .groups = 1, .heads = 2},
                                   .type = TensorType::F16,
                                   .seed = 7,
                                   .rope = kRopes[row.name.size() % std::size(kRopes)],
                                   .has_optional = true,
                                   .embeds = row.name.size() % 2 == 0};
  if (row.mixers.mixer != Mixer::Attention) request.shape.layers = 4;
  if (row.windows.full_every > 0) request.shape.window = 8;
  if (row.has_shared_kv) {
    request.shape.layers = row.windows.full_every + 2;
    request.layer_shape = {.window_head_width = 2, .shared_layers = 2, .layer_embd = 2};
    request.rope = Rope::Divisors;
  }
  if (row.has_latent_attention) {
    request.latent_shape.rank = 8;
    request.shape.rope_width = 2;
    request.rope = Rope::Yarn;
  }
  if (!row.experts.empty()) {
    request.shape.experts = 2;
    request.shape.experts_used = 1;
    if (row.has_latent_attention) request.shape.dense_layers = 1;
  }
  return request;
}

}  // namespace leasehold::testing
