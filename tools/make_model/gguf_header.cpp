#include "tools/make_model/gguf_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tools/make_model/gguf_writer.hpp"
#include "tools/make_model/vocabulary.hpp"

namespace leasehold::make_model {
namespace {

constexpr float kExpertScale = 1.5f;
constexpr float kLogitScale = 0.5f;

/// The value of general.file_type.
std::uint32_t file_type(const ModelRequest& request) {
  switch (request.type) {
    case TensorType::F32:
      return 0;
    case TensorType::F16:
      return 1;
    case TensorType::Q4_0:
      return 2;
    case TensorType::Q8_0:
      return 7;
    case TensorType::Q5_0:
      return 8;
    case TensorType::Q4_K:
      return request.is_mix ? 15 : 14;
    case TensorType::Q6_K:
      return 18;
    case TensorType::IQ4_NL:
      return 25;
    case TensorType::IQ4_XS:
      return 30;
    case TensorType::MXFP4:
      return 38;
    default:
      std::unreachable();
  }
}

void add_general(Metadata& metadata, const ModelRequest& request) {
  metadata.add("general.architecture", request.architecture);
  metadata.add("general.name",
               fmt::format("made {} {} seed {}", request.architecture,
                           request.is_mix ? "Q4_K_M" : name(request.type), request.seed));
  metadata.add("general.alignment", static_cast<std::uint32_t>(kAlignment));
  metadata.add("general.file_type", file_type(request));
}

/// A function that puts the architecture before the rest of a key's name.
auto keys_of(const ModelRequest& request) {
  return [&request](std::string_view rest) {
    return fmt::format("{}.{}", request.architecture, rest);
  };
}

void add_rope(Metadata& metadata, const ModelRequest& request) {
  if (request.rope != Rope::Linear && request.rope != Rope::Yarn) return;
  const bool is_yarn = request.rope == Rope::Yarn;
  const auto key = keys_of(request);
  metadata.add(key("rope.scaling.type"), std::string_view(is_yarn ? "yarn" : "linear"));
  metadata.add(key("rope.scaling.factor"), kRopeFactor);
  if (is_yarn)
    metadata.add(key("rope.scaling.original_context_length"),
                 request.shape.context / static_cast<std::uint32_t>(kRopeFactor));
}

void add_experts(Metadata& metadata, const ModelRequest& request) {
  const ModelShape& shape = request.shape;
  const auto key = keys_of(request);
  metadata.add(key("expert_count"), shape.experts);
  metadata.add(key("expert_used_count"), shape.experts_used);
  metadata.add(key("expert_feed_forward_length"), shape.expert_width());
  if (request.shared_width() > 0 && !request.row().has_latent_attention)
    metadata.add(key("expert_shared_feed_forward_length"), request.shared_width());
  if (shape.dense_layers > 0) metadata.add(key("leading_dense_block_count"), shape.dense_layers);
  const Architecture& row = request.row();
  if (row.has_shared_expert && !row.feed_forward.empty() && !row.has_latent_attention) {
    metadata.add(key("expert_shared_count"), 1u);  // llama.cpp loads some families only with these
    metadata.add(key("interleave_moe_layer_step"), 1u);
  }
  if (row.expert_gating != ExpertGating::Sigmoid && !row.reads_expert_gating) return;
  metadata.add(key("expert_gating_func"), 2u);
  if (!row.reads_expert_weights_norm) return;  // other programs do not scale their weights
  metadata.add(key("expert_weights_norm"), true);
  metadata.add(key("expert_weights_scale"), kExpertScale);
}

/// The keys of latent attention, with those of experts that other programs need in models without.
void add_latent(Metadata& metadata, const ModelRequest& request) {
  const auto key = keys_of(request);
  const LatentConfig latent = request.latent();
  metadata.add(key("attention.kv_lora_rank"), latent.rank);
  if (latent.query_rank > 0) metadata.add(key("attention.q_lora_rank"), latent.query_rank);
  const bool is_older = request.latent_shape.has_fused_heads;
  metadata.add(key(is_older ? "attention.key_length" : "attention.key_length_mla"),
               latent.unrotated_dim + request.rope_dim());
  metadata.add(key(is_older ? "attention.value_length" : "attention.value_length_mla"),
               latent.value_dim);
  if (!is_older) {
    metadata.add(key("attention.key_length"), latent.rank + request.rope_dim());
    metadata.add(key("attention.value_length"), latent.rank);
  }
  metadata.add(key("expert_shared_count"), 1u);
  if (request.shape.experts > 0) return;
  metadata.add(key("expert_feed_forward_length"), request.shape.expert_width());
  metadata.add(key("leading_dense_block_count"), request.shape.layers);
}

/// What layers with a window, layers that share keys and values, and embeddings of layers need.
void add_layers(Metadata& metadata, const ModelRequest& request) {
  const ModelShape& shape = request.shape;
  const auto key = keys_of(request);
  if (request.window() > 0) metadata.add(key("attention.sliding_window"), request.window());
  if (request.row().windows.needs_pattern)
    metadata.add_list(key("attention.sliding_window_pattern"), GgufType::Bool, shape.layers,
                      [&](ByteSink& sink, auto layer) {
                        sink.number(static_cast<std::uint8_t>(request.has_window(layer)));
                      });
  if (request.layer_shape.window_head_width > 0) {
    metadata.add(key("attention.key_length_swa"), request.layer_shape.window_head_width);
    metadata.add(key("attention.value_length_swa"), request.layer_shape.window_head_width);
    metadata.add(key("rope.dimension_count_swa"), request.layer_shape.window_head_width);
  }
  if (request.layer_shape.shared_layers > 0)
    metadata.add(key("attention.shared_kv_layers"), request.layer_shape.shared_layers);
  if (request.row().has_layer_embeddings)  // llama.cpp loads no such family without the key
    metadata.add(key("embedding_length_per_layer_input"), request.layer_shape.layer_embd);
}

/// Lists a number of each layer.
template <class Number>
void add_per_layer(Metadata& metadata, std::string_view key, const ModelConfig& config,
                   Number number) {
  metadata.add_list(key, GgufType::Int32, config.n_layers, [&](ByteSink& sink, std::uint32_t i) {
    sink.number(static_cast<std::int32_t>(number(i)));
  });
}

/// The heads and feed-forward widths. Numbers of kv heads and widths are lists if layers without
/// them are marked by 0.
void add_layer_sizes(Metadata& metadata, const ModelRequest& request) {
  const MixerRule& rule = request.row().mixers;
  const ModelConfig config = request.dimensions();
  const auto key = keys_of(request);
  if (rule.excludes_feed_forward)
    add_per_layer(metadata, key("feed_forward_length"), config, [&](std::uint32_t i) {
      return config.layers[i].mixer == Mixer::None ? request.shape.ffn : 0;
    });
  else
    metadata.add(key("feed_forward_length"), request.shape.ffn);
  metadata.add(key("attention.head_count"), request.shape.heads);
  if (rule.mixer != Mixer::Attention && rule.attention_every == 0)
    add_per_layer(metadata, key("attention.head_count_kv"), config,
                  [&](std::uint32_t i) { return config.layers[i].n_kv_heads; });
  else
    metadata.add(key("attention.head_count_kv"),
                 request.latent_shape.has_fused_heads ? request.shape.heads : config.n_kv_heads);
  if (request.row().has_latent_attention) return add_latent(metadata, request);
  metadata.add(key("attention.key_length"), request.shape.head_dim());
  metadata.add(key("attention.value_length"), request.shape.head_dim());
}

/// How many pairs of a rotation belong to each coordinate of an image. They change nothing in a
/// text.
void add_rope_sections(Metadata& metadata, const ModelRequest& request) {
  const std::uint32_t n_pairs = request.rope_dim() / 2;
  const std::uint32_t sections[] = {n_pairs - n_pairs / 3 * 2, n_pairs / 3, n_pairs / 3, 0};
  metadata.add_list(keys_of(request)("rope.dimension_sections"), GgufType::Int32,
                    std::size(sections), [&](ByteSink& sink, std::uint32_t i) {
                      sink.number(static_cast<std::int32_t>(sections[i]));
                    });
}

/// The shape of the layers with a recurrent state.
void add_state(Metadata& metadata, const ModelRequest& request) {
  const MixerRule& rule = request.row().mixers;
  const RecurrentConfig state = request.dimensions().recurrent;
  const auto add = [&](std::string_view rest, std::uint32_t value) {
    metadata.add(keys_of(request)(rest), value);
  };
  if (rule.mixer == Mixer::ShortConvolution) return add("shortconv.l_cache", state.n_taps);
  add("ssm.conv_kernel", state.n_taps);
  add("ssm.state_size", state.key_dim);
  add("ssm.group_count", state.n_groups);
  add("ssm.time_step_rank", state.n_heads);
  add("ssm.inner_size", state.n_values());
  if (rule.attention_every > 0)
    add("full_attention_interval", std::min(rule.attention_every, request.shape.layers));
}

void add_shape(Metadata& metadata, const ModelRequest& request) {
  const ModelShape& shape = request.shape;
  const auto key = keys_of(request);
  const bool is_llama = request.architecture == "llama";
  metadata.add(key("context_length"), shape.context);
  metadata.add(key("embedding_length"), shape.embd);
  metadata.add(key("block_count"), shape.layers);
  add_layer_sizes(metadata, request);
  const bool centers = request.row().centers_norms;
  metadata.add(key(centers ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"),
               is_llama ? 1e-5f : 1e-6f);
  if (request.row().multiplies_logits) metadata.add(key("logit_scale"), kLogitScale);
  if (request.row().has_scales) metadata.add(key("logit_scale"), 1.0f);  // llama.cpp needs one
  if (request.row().mixers.excludes_feed_forward)                        // and this
    metadata.add(key("attention.layer_norm_epsilon"), 1e-6f);
  metadata.add(key("rope.dimension_count"), request.rope_dim());
  metadata.add(key("rope.freq_base"), is_llama ? 1e4f : 1e6f);
  add_rope(metadata, request);
  if (shape.experts > 0) add_experts(metadata, request);
  add_layers(metadata, request);
  if (request.row().mixers.mixer != Mixer::Attention) add_state(metadata, request);
  if (request.row().has_rope_sections) add_rope_sections(metadata, request);
  if (request.embeds) metadata.add(key("pooling_type"), std::uint32_t{3});
  metadata.add(key("vocab_size"), shape.vocab);
}

void add_vocabulary(Metadata& metadata, std::uint32_t vocab, bool adds_eos) {
  metadata.add("tokenizer.ggml.model", std::string_view("llama"));
  metadata.add_list("tokenizer.ggml.tokens", GgufType::String, vocab,
                    [](ByteSink& sink, auto token) { sink.string(token_text(token)); });
  metadata.add_list("tokenizer.ggml.scores", GgufType::Float32, vocab,
                    [](ByteSink& sink, auto token) { sink.number(token_score(token)); });
  metadata.add_list("tokenizer.ggml.token_type", GgufType::Int32, vocab,
                    [](ByteSink& sink, auto token) { sink.number(token_kind(token)); });
  metadata.add("tokenizer.ggml.bos_token_id", kBosToken);
  metadata.add("tokenizer.ggml.eos_token_id", kEosToken);
  metadata.add("tokenizer.ggml.unknown_token_id", kUnknownToken);
  metadata.add("tokenizer.ggml.add_bos_token", true);
  metadata.add("tokenizer.ggml.add_eos_token", adds_eos);
  metadata.add("tokenizer.ggml.add_space_prefix", true);
}

void add_byte_level_vocabulary(Metadata& metadata, std::uint32_t vocab, bool adds_eos) {
  metadata.add("tokenizer.ggml.model", std::string_view("gpt2"));
  metadata.add("tokenizer.ggml.pre", std::string_view("qwen2"));
  metadata.add_list("tokenizer.ggml.tokens", GgufType::String, vocab,
                    [](ByteSink& sink, auto token) { sink.string(byte_level_text(token)); });
  metadata.add_list("tokenizer.ggml.token_type", GgufType::Int32, vocab,
                    [](ByteSink& sink, auto token) {
                      sink.number(token == kByteLevelEnd ? TokenKind::Control : TokenKind::Normal);
                    });
  const std::vector<std::string> merges = byte_level_merges(vocab);
  metadata.add_list("tokenizer.ggml.merges", GgufType::String,
                    static_cast<std::uint32_t>(merges.size()),
                    [&](ByteSink& sink, auto index) { sink.string(merges[index]); });
  metadata.add("tokenizer.ggml.eos_token_id", kByteLevelEnd);
  metadata.add("tokenizer.ggml.add_bos_token", false);
  if (adds_eos) metadata.add("tokenizer.ggml.add_eos_token", true);
}

void add_part(Metadata& metadata, const PartNumber& part) {
  metadata.add("split.no", part.number);
  metadata.add("split.count", part.n_parts);
  metadata.add("split.tensors.count", static_cast<std::uint32_t>(part.n_tensors));
}

}  // namespace

std::vector<std::byte> gguf_header(const ModelRequest& request,
                                   const std::vector<PlannedTensor>& plan, const PartNumber& part) {
  Metadata metadata;
  if (part.number == 0) {
    add_general(metadata, request);
    add_shape(metadata, request);
    if (request.vocabulary == Vocabulary::ByteLevel)
      add_byte_level_vocabulary(metadata, request.shape.vocab, request.embeds);
    else
      add_vocabulary(metadata, request.shape.vocab, request.embeds);
  }
  if (part.n_parts > 1) add_part(metadata, part);

  return assemble_header(metadata, request.joins_heads ? with_joined_heads(plan) : plan);
}

}  // namespace leasehold::make_model
