#include "tools/make_model/model_shape.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace leasehold::make_model {
namespace {

// Columns: layers, embd, heads, kv_heads, ffn, vocab, context, tied.
constexpr std::array<std::pair<std::string_view, ModelShape>, 6> kShapes{{
    {"tiny", {2, 64, 4, 2, 160, 512, 256}},
    {"demo", {4, 256, 8, 4, 704, 4096, 2048}},
    {"0.5b", {24, 896, 14, 2, 4864, 151936, 32768, true}},
    {"1b", {22, 2048, 32, 4, 5632, 32000, 2048}},
    {"7b", {32, 4096, 32, 32, 11008, 32000, 4096}},
    {"custom", {}},
}};

constexpr std::array<std::pair<std::string_view, Rope>, 4> kRopes{{{"plain", Rope::Plain},
                                                                   {"linear", Rope::Linear},
                                                                   {"yarn", Rope::Yarn},
                                                                   {"divisors", Rope::Divisors}}};

constexpr std::array<std::pair<std::string_view, Vocabulary>, 2> kVocabularies{
    {{"sentencepiece", Vocabulary::SentencePiece}, {"byte-level", Vocabulary::ByteLevel}}};

constexpr std::array<std::pair<std::string_view, WeightType>, 11> kTypes{
    {{"f32", {TensorType::F32}},
     {"f16", {TensorType::F16}},
     {"q8_0", {TensorType::Q8_0}},
     {"q4_0", {TensorType::Q4_0}},
     {"q5_0", {TensorType::Q5_0}},
     {"q4_k", {TensorType::Q4_K}},
     {"q6_k", {TensorType::Q6_K}},
     {"iq4_nl", {TensorType::IQ4_NL}},
     {"iq4_xs", {TensorType::IQ4_XS}},
     {"mxfp4", {TensorType::MXFP4}},
     {"q4_k_m", {TensorType::Q4_K, true}}}};

// Minimum: 3 control tokens and 256 bytes. Maximum: vocabulary.cpp has distinct texts for a million
// tokens.
constexpr std::uint32_t kMinVocab = 259;
constexpr std::uint32_t kMaxVocab = 1'000'000;
constexpr std::uint32_t kMaxWidth = 1u << 18;
constexpr std::uint32_t kMaxLayers = 1024;
constexpr std::uint32_t kMaxExperts = 1024;
constexpr std::uint32_t kMaxHeadDim = 1024;
constexpr std::uint32_t kMaxParts = 1024;

template <class Table>
auto look_up(const Table& table, std::string_view what, std::string_view name)
    -> Result<decltype(table[0].second)> {
  const auto row = std::ranges::find(table, name, [](const auto& entry) { return entry.first; });
  if (row != table.end()) return row->second;
  std::array<std::string_view, std::tuple_size_v<Table>> known;
  std::ranges::transform(table, known.begin(), [](const auto& entry) { return entry.first; });
  return fail(Errc::BadRequest, fmt::format("{} '{}' is unknown; choose one of {}", what, name,
                                            fmt::join(known, ", ")));
}

Result<void> within(std::string_view option, std::uint32_t value, std::uint32_t least,
                    std::uint32_t most) {
  if (value >= least && value <= most) return {};
  return fail(Errc::BadRequest,
              fmt::format("{} is {}; choose {} to {}", option, value, least, most));
}

Result<void> check_ranges(const ModelShape& shape) {
  TRY(within("--layers", shape.layers, 1, kMaxLayers));
  TRY(within("--embd", shape.embd, 2, kMaxWidth));
  TRY(within("--heads", shape.heads, 1, shape.embd));
  TRY(within("--kv-heads", shape.kv_heads, 1, shape.heads));
  TRY(within("--ffn", shape.ffn, 1, kMaxWidth));
  TRY(within("--vocab", shape.vocab, kMinVocab, kMaxVocab));
  return within("--context", shape.context, 1, 1u << 24);
}

Result<void> check_experts(const ModelRequest& request) {
  const ModelShape& shape = request.shape;
  const bool needs_them = request.row().feed_forward.empty();
  if (shape.experts == 0 && !needs_them) return {};
  if (request.row().experts.empty())
    return fail(Errc::BadRequest, fmt::format("--arch {} has no --experts; use 0 or another --arch",
                                              request.architecture));
  TRY(within("--experts", shape.experts, 1, kMaxExperts));
  TRY(within("--experts-used", shape.experts_used, 1, shape.experts));
  if (needs_them && shape.dense_layers > 0)
    return fail(Errc::BadRequest,
                fmt::format("--arch {} has experts in every layer; use --dense-layers 0",
                            request.architecture));
  TRY(within("--dense-layers", shape.dense_layers, 0, shape.layers));
  return within("--expert-ffn", shape.expert_width(), 1, kMaxWidth);
}

Result<void> check_state(const ModelRequest& request) {
  const Mixer mixer = request.row().mixers.mixer;
  if (mixer == Mixer::Attention || mixer == Mixer::ShortConvolution) return {};
  const RecurrentConfig state = request.dimensions().recurrent;
  TRY(within("--state-size", state.key_dim, 1, kMaxHeadDim));
  TRY(within("--state-heads", state.n_heads, 1, kMaxHeadDim));
  TRY(within("--state-groups", state.n_groups, 1, state.n_heads));
  if (state.n_heads % state.n_groups == 0) return {};
  return fail(Errc::BadRequest,
              fmt::format("--state-heads {} must be a multiple of --state-groups {}", state.n_heads,
                          state.n_groups));
}

/// Checks what only some architectures have.
Result<void> check_layers(const ModelRequest& request) {
  const ModelShape& shape = request.shape;
  const Architecture& row = request.row();
  const std::tuple<std::string_view, std::uint32_t, bool> options[] = {
      {"--window-head-dim", request.layer_shape.window_head_width, row.windows.full_every > 0},
      {"--shared-layers", request.layer_shape.shared_layers, row.has_shared_kv},
      {"--layer-embd", request.layer_shape.layer_embd, row.has_layer_embeddings}};
  for (const auto& [option, value, is_supported] : options)
    if (value > 0 && !is_supported)
      return fail(Errc::BadRequest, fmt::format("--arch {} has no {}; use 0 or another --arch",
                                                request.architecture, option));
  const std::uint32_t most_shared = shape.layers > 2 ? shape.layers - 2 : 0;
  TRY(within("--shared-layers", request.layer_shape.shared_layers, 0, most_shared));
  TRY(within("--layer-embd", request.layer_shape.layer_embd, 0, kMaxWidth / shape.layers));
  if (request.window_head_dim() % 2 == 0 && request.window_head_dim() <= kMaxHeadDim) return {};
  return fail(Errc::BadRequest, fmt::format("--window-head-dim {} must be even and at most {}",
                                            request.layer_shape.window_head_width, kMaxHeadDim));
}

Result<void> check_heads(const ModelRequest& request) {
  const ModelShape& shape = request.shape;
  if (shape.head_width != 0) {
    TRY(within("--head-dim", shape.head_width, 2, kMaxHeadDim));
    if (shape.head_width % 2 != 0)
      return fail(Errc::BadRequest, fmt::format("--head-dim {} must be even", shape.head_width));
  } else if (shape.embd % shape.heads != 0 || shape.head_dim() % 2 != 0) {
    return fail(Errc::BadRequest, fmt::format("--embd {} must be --heads {} times an even number",
                                              shape.embd, shape.heads));
  }
  const std::uint32_t most =
      request.row().has_latent_attention ? shape.head_dim() - 1 : shape.head_dim();
  if (request.rope_dim() % 2 != 0 || request.rope_dim() > most)
    return fail(Errc::BadRequest,
                fmt::format("--rope-dim {} must be even and at most {}", request.rope_dim(), most));
  if (shape.heads % shape.kv_heads != 0) {
    return fail(Errc::BadRequest, fmt::format("--heads {} must be a multiple of --kv-heads {}",
                                              shape.heads, shape.kv_heads));
  }
  return {};
}

Result<void> check_latent(const ModelRequest& request) {
  if (!request.row().has_latent_attention) {
    if (!request.latent_shape.has_fused_heads) return {};
    return fail(Errc::BadRequest,
                fmt::format("--arch {} has no --fused-heads; omit it or choose another --arch",
                            request.architecture));
  }
  const LatentConfig latent = request.latent();
  TRY(within("--latent-rank", latent.rank, 1, kMaxHeadDim - request.rope_dim()));
  return within("--query-rank", latent.query_rank, request.latent_shape.has_direct_queries ? 0 : 1,
                kMaxWidth);
}

}  // namespace

Result<ModelShape> named_shape(std::string_view name) {
  return look_up(kShapes, "--shape", name);
}

Result<std::string_view> architecture_from(std::string_view name) {
  if (const Architecture* row = find_architecture(name)) return row->name;
  return fail(Errc::BadRequest,
              fmt::format("--arch '{}' is unknown; choose one of {}", name, architecture_names()));
}

Result<WeightType> weight_type_from(std::string_view name) {
  return look_up(kTypes, "--type", name);
}

Result<Rope> rope_from(std::string_view name) {
  return look_up(kRopes, "--rope", name);
}

Result<Vocabulary> vocabulary_from(std::string_view name) {
  return look_up(kVocabularies, "--vocabulary", name);
}

bool ModelRequest::has_window(std::uint32_t layer) const {
  const std::uint32_t full_every = row().windows.full_every;
  return window() > 0 && full_every > 0 && (layer + 1) % full_every != 0;
}

namespace {

std::uint32_t attention_every(const ModelShape& shape) {
  constexpr std::uint32_t kUsual = 4;
  return std::min(kUsual, shape.layers);
}

/// Whether a layer of a family that has a mixer or a feed-forward has a feed-forward.
bool has_feed_forward_alone(std::uint32_t layer, const LayerConfig& shape) {
  return shape.mixer != Mixer::Attention && layer % 2 == 1;
}

RecurrentConfig recurrent_shape(const ModelRequest& request) {
  const ModelShape& shape = request.shape;
  if (request.row().mixers.mixer == Mixer::ShortConvolution)
    return {.n_taps = 3, .channels = shape.embd};
  RecurrentConfig recurrent{
      .n_taps = 4,
      .n_groups = request.state.groups != 0 ? request.state.groups : shape.kv_heads,
      .n_heads = request.state.heads != 0 ? request.state.heads : shape.heads,
      .key_dim = request.state.key_size != 0 ? request.state.key_size : shape.head_dim()};
  recurrent.head_dim = recurrent.key_dim;
  recurrent.channels = (2 * recurrent.n_groups + recurrent.n_heads) * recurrent.key_dim;
  return recurrent;
}

void choose_mixers(const ModelRequest& request, ModelConfig& config) {
  const MixerRule& rule = request.row().mixers;
  if (rule.mixer == Mixer::Attention) return;
  config.recurrent = recurrent_shape(request);
  for (std::uint32_t i = 0; i < config.n_layers; ++i) {
    LayerConfig& layer = config.layers[i];
    if ((i + 1) % attention_every(request.shape) != 0) {
      layer.mixer = rule.mixer;
      layer.n_kv_heads = 0;
    }
    if (!rule.excludes_feed_forward) continue;
    const bool has_feed_forward = has_feed_forward_alone(i, layer);
    if (has_feed_forward) layer.mixer = Mixer::None;
    if (!has_feed_forward) layer.n_ff = 0;
    config.experts.has_feed_forward.push_back(has_feed_forward);
  }
}

/// What windows and shared keys and values change.
void choose_layers(const ModelRequest& request, ModelConfig& config) {
  const ModelShape& shape = request.shape;
  config.n_layer_embd = request.layer_shape.layer_embd;
  const std::uint32_t first_shared = shape.layers - request.layer_shape.shared_layers;
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    LayerConfig& one = config.layers[layer];
    const bool has_window = request.has_window(layer);
    if (has_window) one.head_dim = request.window_head_dim();
    if (layer >= first_shared) one.kv_distance = layer - (first_shared - (has_window ? 2 : 1));
  }
}

}  // namespace

ModelConfig ModelRequest::dimensions() const {
  ModelConfig config{};
  config.n_layers = shape.layers;
  config.n_embd = shape.embd;
  config.n_heads = shape.heads;
  config.n_kv_heads = shape.kv_heads;
  config.head_dim = shape.head_dim();
  config.rope.dim = rope_dim();
  config.latent = latent();
  if (config.latent.rank > 0) {
    config.n_kv_heads = 1;
    config.head_dim = config.latent.rank + config.rope.dim;
  }
  config.n_ff = shape.ffn;
  config.n_vocab = shape.vocab;
  if (shape.experts > 0)
    config.experts = {.n_experts = shape.experts,
                      .n_used = shape.experts_used,
                      .n_ff = shape.expert_width(),
                      .n_shared_ff = shared_width(),
                      .n_dense_layers = shape.dense_layers,
                      .are_beside_ff = row().has_experts_beside};
  config.layers = uniform_layers(config);
  choose_layers(*this, config);
  choose_mixers(*this, config);
  return config;
}

std::uint32_t ModelRequest::shared_width() const {
  if (!row().has_shared_expert) return 0;
  return row().feed_forward.empty() ? shape.ffn : shape.expert_width();
}

std::uint32_t ModelRequest::rope_dim() const {
  if (shape.rope_width != 0) return shape.rope_width;
  return row().has_latent_attention ? shape.head_dim() / 2 : shape.head_dim();
}

LatentConfig ModelRequest::latent() const {
  if (!row().has_latent_attention) return {};
  const LatentShape& asked = latent_shape;
  const std::uint32_t query_width = asked.query_rank != 0 ? asked.query_rank : shape.embd / 2;
  return {.rank = asked.rank != 0 ? asked.rank : 4 * shape.head_dim(),
          .query_rank = asked.has_direct_queries ? 0 : query_width,
          .unrotated_dim = shape.head_dim() - rope_dim(),
          .value_dim = shape.head_dim()};
}

Result<void> check(const ModelRequest& request) {
  const ModelShape& shape = request.shape;
  TRY(check_ranges(shape));
  TRY(check_heads(request));
  TRY(check_latent(request));
  TRY(check_experts(request));
  TRY(check_layers(request));
  TRY(check_state(request));
  TRY(within("--parts", request.parts, 1, kMaxParts));
  // Weights are made in pairs, so a row has an even length in any type. A mix uses blocks of 32 for
  // rows that are not made of blocks of 256.
  const std::uint32_t block =
      request.is_mix ? 32u : std::max(2u, block_shape(request.type).elements);
  const LatentConfig latent = request.latent();
  const std::pair<std::string_view, std::uint32_t> rows[] = {
      {"--embd", shape.embd},
      {"--ffn", shape.ffn},
      {"--expert-ffn", shape.expert_width()},
      {"--heads times --head-dim", shape.query_width()},
      {"--heads times --window-head-dim", shape.heads * request.window_head_dim()},
      {"--layer-embd", request.layer_shape.layer_embd},
      {"--state-heads times --state-size", request.dimensions().recurrent.n_values()},
      {"--latent-rank", latent.rank},
      {"--query-rank", latent.query_rank},
      {"--head-dim minus --rope-dim", latent.unrotated_dim}};
  for (const auto& [option, length] : rows) {
    if (length % block != 0)
      return fail(Errc::BadRequest,
                  fmt::format("{} is {}; choose a multiple of {}, the block size of --type {}",
                              option, length, block, name(request.type)));
  }
  return {};
}

}  // namespace leasehold::make_model
