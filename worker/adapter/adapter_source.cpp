#include "worker/adapter/adapter_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>

#include "common/expects.hpp"
#include "common/utf8.hpp"
#include "kernels/model/architecture.hpp"

namespace leasehold {
namespace {

/// The names of a target's weight in a GGUF file and in a checkpoint.
struct TargetNames {
  std::string_view gguf;
  std::string_view module;
};

/// Indexed by AdapterTarget.
constexpr std::array<TargetNames, kAdapterTargets> kTargets{{
    {"attn_q.weight", "self_attn.q_proj"},
    {"attn_k.weight", "self_attn.k_proj"},
    {"attn_v.weight", "self_attn.v_proj"},
    {"attn_output.weight", "self_attn.o_proj"},
    {"ffn_gate.weight", "mlp.gate_proj"},
    {"ffn_up.weight", "mlp.up_proj"},
    {"ffn_down.weight", "mlp.down_proj"},
}};

constexpr std::string_view kPeftRoot = "base_model.model.";

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

/// Takes "12." from "12.rest". Only the shortest way to write a number counts.
std::optional<std::uint32_t> take_layer(std::string_view& text) {
  std::uint32_t layer = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), layer);
  const auto size = static_cast<std::size_t>(end - text.data());
  if (error != std::errc{} || !text.substr(size).starts_with('.')) return std::nullopt;
  if (size > 1 && text.front() == '0') return std::nullopt;
  text.remove_prefix(size + 1);
  return layer;
}

std::optional<FoundMatrix> found(std::string_view layer_and_weight, AdapterHalf half,
                                 std::string_view TargetNames::* names) {
  const auto layer = take_layer(layer_and_weight);
  const auto* target = std::ranges::find(kTargets, layer_and_weight, names);
  if (!layer || target == kTargets.end()) return std::nullopt;
  return FoundMatrix{.layer = *layer,
                     .target = static_cast<AdapterTarget>(target - kTargets.begin()),
                     .half = half,
                     .matrix = {}};
}

/// The rows and columns of a weight.
struct WeightShape {
  std::uint32_t n_in;
  std::uint32_t n_out;
};

const TensorSpec* required_spec(std::span<const TensorSpec> specs, AdapterTarget target) {
  const std::string_view name = kTargets[static_cast<std::size_t>(target)].gguf;
  const auto spec = std::ranges::find(specs, name, &TensorSpec::name);
  return spec == specs.end() || spec->presence != Presence::Required ? nullptr : &*spec;
}

/// The shape of a dense weight; nothing if the layer has no such weight.
std::optional<WeightShape> shape_of(const ModelConfig& config, std::uint32_t layer,
                                    AdapterTarget target) {
  const Architecture* architecture = find_architecture(config.architecture);
  expects(architecture != nullptr, "a config names an architecture of the table");
  if (layer >= config.n_layers) return std::nullopt;
  const LayerConfig& shape = config.layers[layer];
  const bool is_attention = target <= AdapterTarget::Output;
  const bool has_part =
      is_attention ? shape.mixer == Mixer::Attention && config.latent.rank == 0 : shape.n_ff > 0;
  if (!has_part) return std::nullopt;
  const auto specs = is_attention ? architecture->attention : architecture->feed_forward;
  const TensorSpec* spec = required_spec(specs, target);
  if (spec == nullptr) return std::nullopt;
  // Without a value matrix the products of the key matrix are the values, too.
  if (target == AdapterTarget::Key && required_spec(specs, AdapterTarget::Value) == nullptr)
    return std::nullopt;
  const WeightShape weight{.n_in = dimension(spec->columns, config, layer),
                           .n_out = dimension(spec->rows, config, layer)};
  return weight.n_in > 0 && weight.n_out > 0 ? std::optional(weight) : std::nullopt;
}

auto place_of(const FoundMatrix& found) {
  return std::tuple(found.layer, found.target, found.half);
}

std::unexpected<Error> refuse(Errc code, std::string_view path, const FoundMatrix& found,
                              std::string_view why) {
  return fail(code,
              fmt::format("{}: tensor {} {}", path, printable_excerpt(found.matrix.name), why));
}

Result<WeightShape> weight_shape(const FoundMatrix& found, const ModelConfig& config,
                                 std::string_view path) {
  if (const auto shape = shape_of(config, found.layer, found.target)) return *shape;
  return refuse(Errc::UnsupportedModel, path, found,
                fmt::format("changes a weight that an adapter of this {} model with {} layers "
                            "cannot change; train it on {} of dense layers",
                            config.architecture, config.n_layers, "q, k, v, o, gate, up and down"));
}

/// The side of a matrix that is the weight's width, not the rank.
std::uint64_t width_of(const FoundMatrix& found) {
  return found.half == AdapterHalf::A ? found.matrix.columns : found.matrix.rows;
}
std::uint64_t rank_of(const FoundMatrix& found) {
  return found.half == AdapterHalf::A ? found.matrix.rows : found.matrix.columns;
}

Result<void> check_width(const FoundMatrix& found, std::uint32_t width, std::string_view path) {
  if (width_of(found) == width) return {};
  return refuse(
      Errc::UnsupportedModel, path, found,
      fmt::format("is for a weight {} {} wide, and the model's is {}; load the adapter "
                  "of this model",
                  width_of(found), found.half == AdapterHalf::A ? "columns" : "rows", width));
}

Result<void> check_type(const FoundMatrix& found, std::string_view path) {
  switch (found.matrix.type) {
    case TensorType::F32:
    case TensorType::F16:
    case TensorType::BF16:
    case TensorType::Q8_0:
      return {};
    default:
      return refuse(Errc::UnsupportedModel, path, found,
                    fmt::format("has type {}; convert the adapter to f32, f16, bf16 or q8_0",
                                name(found.matrix.type)));
  }
}

/// The type of both matrices in memory. Quantised blocks and two types become floats, exactly.
TensorType common_type(TensorType a, TensorType b) {
  return a == b && a != TensorType::Q8_0 ? a : TensorType::F32;
}

Result<AdapterPair> make_pair(const FoundMatrix& a, const FoundMatrix& b, const ModelConfig& config,
                              std::uint32_t max_rank, std::string_view path) {
  const WeightShape shape = TRY(weight_shape(a, config, path));
  TRY(check_type(a, path));
  TRY(check_type(b, path));
  TRY(check_width(a, shape.n_in, path));
  TRY(check_width(b, shape.n_out, path));
  if (rank_of(a) != rank_of(b))
    return refuse(Errc::FileCorrupt, path, b,
                  fmt::format("has rank {}, and {} has rank {}", rank_of(b),
                              printable_excerpt(a.matrix.name), rank_of(a)));
  if (rank_of(a) > max_rank)
    return refuse(Errc::UnsupportedModel, path, a,
                  fmt::format("has rank {}; this worker takes up to {} (--max-adapter-rank)",
                              rank_of(a), max_rank));
  return AdapterPair{.weight = {.layer = a.layer,
                                .target = a.target,
                                .type = common_type(a.matrix.type, b.matrix.type),
                                .rank = static_cast<std::uint32_t>(rank_of(a)),
                                .n_in = shape.n_in,
                                .n_out = shape.n_out},
                     .source = {.a = a.matrix, .b = b.matrix}};
}

/// The rows of a head in the order of a checkpoint; 0 if the model keeps that order.
std::uint32_t permuted_head(const AdaptedWeight& weight, const ModelConfig& config) {
  const bool is_rotated =
      weight.target == AdapterTarget::Query || weight.target == AdapterTarget::Key;
  if (!is_rotated || !find_architecture(config.architecture)->permutes_heads) return 0;
  return config.layers[weight.layer].head_dim;
}

std::unexpected<Error> lacks_other(const FoundMatrix& found, std::string_view path) {
  return refuse(Errc::MissingWeight, path, found,
                fmt::format("has no {} beside it; convert the adapter again",
                            found.half == AdapterHalf::A ? "matrix B" : "matrix A"));
}

}  // namespace

std::optional<FoundMatrix> found_in_gguf(std::string_view name) {
  if (!take_prefix(name, "blk.")) return std::nullopt;
  if (take_suffix(name, ".lora_a")) return found(name, AdapterHalf::A, &TargetNames::gguf);
  if (take_suffix(name, ".lora_b")) return found(name, AdapterHalf::B, &TargetNames::gguf);
  return std::nullopt;
}

std::string_view peft_module(std::string_view tensor_name) {
  take_prefix(tensor_name, kPeftRoot);
  if (!take_suffix(tensor_name, ".lora_A.weight")) take_suffix(tensor_name, ".lora_B.weight");
  return tensor_name;
}

std::optional<FoundMatrix> found_in_peft(std::string_view name) {
  const bool is_a = name.ends_with(".lora_A.weight");
  if (!name.starts_with(kPeftRoot) || (!is_a && !name.ends_with(".lora_B.weight")))
    return std::nullopt;
  std::string_view module = peft_module(name);
  // Models that also read images call the part that reads text so, before or after "model".
  for (const std::string_view part : {"model.", "language_model.", "model."})
    take_prefix(module, part);
  if (!take_prefix(module, "layers.")) return std::nullopt;
  return found(module, is_a ? AdapterHalf::A : AdapterHalf::B, &TargetNames::module);
}

Result<std::vector<AdapterPair>> pair_matrices(std::vector<FoundMatrix> found,
                                               const ModelConfig& config, std::uint32_t max_rank,
                                               bool is_checkpoint, std::string_view path) {
  if (found.empty())
    return fail(Errc::MissingWeight, fmt::format("{}: has no matrices of an adapter", path));
  std::ranges::sort(found, {}, place_of);
  std::vector<AdapterPair> pairs;
  for (std::size_t i = 0; i < found.size(); i += 2) {
    const FoundMatrix& a = found[i];
    if (a.half == AdapterHalf::B || i + 1 == found.size()) return lacks_other(a, path);
    const FoundMatrix& b = found[i + 1];
    if (place_of(b) == place_of(a))
      return refuse(Errc::FileCorrupt, path, b,
                    fmt::format("is for the same weight as {}", printable_excerpt(a.matrix.name)));
    if (b.layer != a.layer || b.target != a.target) return lacks_other(a, path);
    pairs.push_back(TRY(make_pair(a, b, config, max_rank, path)));
    if (is_checkpoint)
      pairs.back().source.permuted_head = permuted_head(pairs.back().weight, config);
  }
  return pairs;
}

std::uint64_t largest_adapter_bytes(const ModelConfig& config, std::uint32_t rank) {
  std::uint64_t values = 0;
  for (std::uint32_t layer = 0; layer < config.n_layers; ++layer)
    for (std::size_t target = 0; target < kAdapterTargets; ++target)
      if (const auto shape = shape_of(config, layer, static_cast<AdapterTarget>(target)))
        values += (std::uint64_t{shape->n_in} + shape->n_out) * rank;
  return values * sizeof(float);
}

}  // namespace leasehold
