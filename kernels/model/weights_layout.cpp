#include "kernels/model/weights_layout.hpp"

#include <fmt/format.h>
#include <sodium/crypto_hash_sha256.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <concepts>
#include <unordered_set>

#include "common/expects.hpp"
#include "kernels/model/architecture.hpp"
#include "kernels/model/file_rows.hpp"
#include "kernels/model/transposed_weight.hpp"
#include "kernels/quant/row_group.hpp"

namespace leasehold {
namespace {

constexpr TensorSpec kEmbedding = {"token_embd.weight", TensorDim::Embedding,
                                   TensorDim::Vocabulary};
constexpr TensorSpec kLayerEmbeddings[] = {
    {.name = "per_layer_token_embd.weight",
     .columns = TensorDim::LayerEmbeddings,
     .rows = TensorDim::Vocabulary,
     .is_table = true},
    {"per_layer_model_proj.weight", TensorDim::Embedding, TensorDim::LayerEmbeddings},
    {"per_layer_proj_norm.weight", TensorDim::LayerEmbedding, TensorDim::One}};
constexpr TensorSpec kOutputNorm = {"output_norm.weight", TensorDim::Embedding, TensorDim::One};
constexpr TensorSpec kOutput = {"output.weight", TensorDim::Embedding, TensorDim::Vocabulary};

/// A tensor that a model needs, with its name in the file.
struct RequiredTensor {
  std::string name;
  TensorSpec rule;
  std::uint32_t layer = 0;       ///< 0 for tensors of no layer.
  std::string fused_name = {};   ///< The tensor that may have its rows instead; empty: none.
  std::uint32_t n_matrices = 1;  ///< Matrices in the tensor, and in the fused tensor.
  std::vector<std::uint32_t> parts = {};  ///< Rows in each matrix; see TensorSpec::parts.
  std::uint32_t first_row = 0;            ///< In each matrix of the fused tensor.
  std::uint32_t n_fused_rows = 0;         ///< Rows of such a matrix.
};

/// The rows of a tensor in each matrix of the fused tensor that may have them.
std::vector<std::uint32_t> parts_of(const TensorSpec& rule, const ModelConfig& config,
                                    std::uint32_t layer) {
  if (rule.parts.empty()) return {dimension(rule.fused_rows(), config, layer)};
  std::vector<std::uint32_t> parts;
  for (const TensorDim part : rule.parts) parts.push_back(dimension(part, config, layer));
  return parts;
}

bool has_several_matrices(const TensorSpec& rule) {
  return rule.presence == Presence::PerExpert || rule.presence == Presence::PerHead;
}

/// The matrices of a tensor: one per expert or head, or those of `groups`.
std::uint32_t matrices_of(const TensorSpec& rule, const ModelConfig& config, std::uint32_t layer) {
  return has_several_matrices(rule) ? matrix_count(rule, config)
                                    : dimension(rule.groups, config, layer);
}

/// Adds the required tensors of a layer and the optional ones that the file has.
void add_layer(const GgufFile& file, const ModelConfig& config, std::uint32_t layer,
               std::span<const TensorSpec> rules, std::vector<RequiredTensor>& needs) {
  for (const TensorSpec& rule : rules) {
    RequiredTensor need{
        .name = fmt::format("blk.{}.{}", layer, rule.name), .rule = rule, .layer = layer};
    if (dimension(rule.rows, config, layer) == 0 || dimension(rule.columns, config, layer) == 0)
      continue;
    if (rule.presence == Presence::Optional && !has_tensor(file, config, need.name)) continue;
    need.n_matrices = matrices_of(rule, config, layer);
    need.parts = parts_of(rule, config, layer);
    if (!rule.fused.empty()) need.fused_name = fmt::format("blk.{}.{}", layer, rule.fused);
    for (const TensorSpec& other : rules) {
      if (rule.fused.empty() || other.fused != rule.fused) continue;
      if (other.name == rule.name) need.first_row = need.n_fused_rows;
      for (const std::uint32_t rows : parts_of(other, config, layer)) need.n_fused_rows += rows;
      // A file with one of the parts has all of them; otherwise rows would be left unused.
      if (other.name != rule.fused && file.find(fmt::format("blk.{}.{}", layer, other.name)))
        need.fused_name.clear();
    }
    needs.push_back(std::move(need));
  }
}

std::vector<RequiredTensor> required_tensors(const GgufFile& file, const ModelConfig& config) {
  const Architecture* architecture = find_architecture(config.architecture);
  expects(architecture != nullptr, "a config names an architecture of the table");
  std::vector<RequiredTensor> needs = {{std::string(kEmbedding.name), kEmbedding}};
  if (config.n_layer_embd > 0)
    for (const TensorSpec& spec : kLayerEmbeddings) needs.push_back({std::string(spec.name), spec});
  for (std::uint32_t layer = 0; layer < config.n_layers; ++layer) {
    add_layer(file, config, layer, mixer_tensors(*architecture, config.layers[layer].mixer), needs);
    if (config.layers[layer].n_ff > 0)
      add_layer(file, config, layer, architecture->feed_forward, needs);
    if (config.experts.in_layer(layer))
      add_layer(file, config, layer, architecture->experts, needs);
  }
  needs.push_back({.name = std::string(kOutputNorm.name),
                   .rule = kOutputNorm,
                   .fused_name = std::string(architecture->output_norm),
                   .parts = {1},
                   .n_fused_rows = 1});
  if (!config.tied_embeddings) needs.push_back({std::string(kOutput.name), kOutput});
  return needs;
}

/// Vectors are always F32.
bool is_f32(const TensorSpec& rule) {
  return rule.is_f32 || rule.rows == TensorDim::One;
}

/// Rows of a table stay whole, because a row that is read alone is then one piece of memory. A
/// group contains rows of one matrix only, so rows of matrices of experts or heads are grouped
/// only if they form whole groups.
MatrixLayout layout_for(const RequiredTensor& need, TensorType type, std::uint32_t rows_per_matrix,
                        Arithmetic arithmetic) {
  const bool is_matrix = !is_f32(need.rule) && !need.rule.is_table;
  const bool fits = !has_several_matrices(need.rule) || rows_per_matrix % kGroupRows == 0;
  return arithmetic == Arithmetic::Int8 && is_matrix && has_row_groups(type) && fits
             ? MatrixLayout::RowGroups
             : MatrixLayout::Rows;
}

/// The tensors of a weight in the file, and its rows there.
struct WeightSource {
  TensorType type;
  std::vector<WeightPiece> pieces;
  bool is_transposed = false;
};

/// Files of Mixtral from early 2024 have a tensor per expert: "ffn_gate.0.weight".
std::string name_of_expert(std::string_view name, std::uint32_t expert) {
  constexpr std::string_view kSuffix = "_exps.weight";
  return fmt::format("{}.{}.weight", name.substr(0, name.size() - kSuffix.size()), expert);
}

Result<WeightSource> one_tensor_per_expert(const GgufFile& file, const RequiredTensor& need,
                                           std::uint32_t n_experts, std::uint32_t rows,
                                           std::uint32_t columns) {
  WeightSource source{};
  for (std::uint32_t expert = 0; expert < n_experts; ++expert) {
    const std::string name = name_of_expert(need.name, expert);
    const GgufTensor* tensor = TRY(find_tensor(file, name, rows, columns));
    if (expert > 0 && tensor->type != source.type)
      return fail(Errc::UnsupportedModel,
                  fmt::format("{}: tensor {} is {}, and the expert's before it {}; this build "
                              "needs them equal",
                              file.path(), name, leasehold::name(tensor->type),
                              leasehold::name(source.type)));
    source.type = tensor->type;
    source.pieces.push_back({name, 0, rows});
  }
  return source;
}

/// Whether the file has the rows in the fused tensor, which may have the name of one of its parts.
bool is_fused(const GgufFile& file, const ModelConfig& config, const RequiredTensor& need,
              std::uint32_t rows) {
  if (need.fused_name.empty()) return false;
  const GgufTensor* fused = file.find(need.fused_name);
  if (fused == nullptr) return has_tensor(file, config, need.fused_name);
  return need.fused_name != need.name || fused->rows() != rows;
}

/// The type of a transposed tensor. The blocks of a quantised type lie along the rows of the file.
TensorType transposed_type(TensorType type) {
  return block_shape(type).elements == 1 ? type : TensorType::F32;
}

Result<WeightSource> rows_of_fused(const GgufFile& file, const ModelConfig& config,
                                   const RequiredTensor& need) {
  const std::uint32_t columns = dimension(need.rule.fused_columns(), config, need.layer);
  const auto [fused, begin, is_joined] = TRY(find_rows(
      file, config, need.layer, need.fused_name, need.n_matrices * need.n_fused_rows, columns));
  const bool is_transposed = need.rule.is_transposed;
  WeightSource source{.type = is_transposed ? transposed_type(fused->type) : fused->type,
                      .pieces = {},
                      .is_transposed = is_transposed};
  std::uint32_t first_row = begin + need.first_row;
  for (const std::uint32_t part : need.parts) {
    for (std::uint32_t matrix = 0; matrix < need.n_matrices; ++matrix)
      source.pieces.push_back({fused->name, matrix * need.n_fused_rows + first_row, part});
    first_row += part;
  }
  return source;
}

Result<WeightSource> find_source(const GgufFile& file, const ModelConfig& config,
                                 const RequiredTensor& need, std::uint32_t rows,
                                 std::uint32_t columns) {
  if (is_fused(file, config, need, rows)) return rows_of_fused(file, config, need);
  if (need.rule.presence == Presence::PerExpert && file.find(need.name) == nullptr &&
      file.find(name_of_expert(need.name, 0)) != nullptr)
    return one_tensor_per_expert(file, need, need.n_matrices, rows / need.n_matrices, columns);
  // No file has the parts of heads as tensors of their own.
  const bool is_part_of_heads = need.rule.presence == Presence::PerHead && !need.fused_name.empty();
  const std::string& name = is_part_of_heads ? need.fused_name : need.name;
  const FileRows found = TRY(find_rows(file, config, need.layer, name, rows, columns));
  WeightSource source{.type = found.tensor->type, .pieces = {}};
  if (!found.is_joined) return source;
  source.pieces = {{found.tensor->name, found.first, rows == 1 ? columns : rows}};
  return source;
}

Result<WeightTensor> weight_for(const GgufFile& file, const ModelConfig& config,
                                const RequiredTensor& need, Arithmetic arithmetic) {
  const std::uint32_t columns = dimension(need.rule.columns, config, need.layer);
  const std::uint32_t matrices = matrix_count(need.rule, config);
  const std::uint32_t rows_per_matrix = dimension(need.rule.rows, config, need.layer);
  const std::uint32_t rows = rows_per_matrix * matrices;
  WeightSource source = TRY(find_source(file, config, need, rows, columns));
  if (is_f32(need.rule) && source.type != TensorType::F32)
    return fail(Errc::UnsupportedModel, fmt::format("{}: vector {} is {}; this build reads F32",
                                                    file.path(), need.name, name(source.type)));
  const MatrixLayout layout = layout_for(need, source.type, rows_per_matrix, arithmetic);
  const std::uint64_t size_bytes = layout == MatrixLayout::RowGroups
                                       ? row_groups(rows) * row_group_bytes(source.type, columns)
                                       : std::uint64_t{rows} * row_size_bytes(source.type, columns);
  return WeightTensor{.name = need.name,
                      .type = source.type,
                      .rows = rows,
                      .columns = columns,
                      .layout = layout,
                      .is_table = need.rule.is_table,
                      .size_bytes = size_bytes,
                      .pieces = std::move(source.pieces),
                      .is_transposed = source.is_transposed};
}

/// Whether a tensor belongs to a layer that is not loaded, or to keys and values that a layer reads
/// from another one.
bool is_skipped(std::string_view tensor, const ModelConfig& config) {
  constexpr std::string_view kPrefix = "blk.";
  if (!tensor.starts_with(kPrefix)) return false;
  tensor.remove_prefix(kPrefix.size());
  std::uint32_t layer = 0;
  const auto parsed = std::from_chars(tensor.data(), tensor.data() + tensor.size(), layer);
  if (parsed.ec != std::errc()) return false;
  if (layer >= config.n_layers) return layer < config.n_layers + config.n_skipped_layers;
  constexpr std::string_view kOfStoredKv[] = {".attn_k.weight", ".attn_k_norm.weight",
                                              ".attn_v.weight"};
  const std::string_view what(parsed.ptr, tensor.data() + tensor.size());
  return !config.layers[layer].stores_kv() &&
         std::ranges::find(kOfStoredKv, what) != std::end(kOfStoredKv);
}

Result<void> reject_unused_tensors(const GgufFile& file, const ModelConfig& config,
                                   const std::vector<WeightTensor>& weights) {
  constexpr std::string_view kOfConfig[] = {kRopeFreqFactors, kLongRopeFactors, kShortRopeFactors};
  std::unordered_set<std::string_view> used(std::begin(kOfConfig), std::end(kOfConfig));
  for (const WeightTensor& weight : weights) {
    if (weight.pieces.empty()) used.insert(weight.name);
    for (const WeightPiece& piece : weight.pieces) used.insert(piece.tensor);
  }
  for (const GgufTensor& tensor : file.tensors())
    if (!used.contains(tensor.name) && !is_skipped(tensor.name, config))
      return fail(Errc::UnsupportedModel,
                  fmt::format("{}: tensor {} is not used by this build", file.path(), tensor.name));
  return {};
}

/// Hashes little-endian numbers, and texts preceded by their lengths.
LayoutDigest digest_of(const std::vector<WeightTensor>& weights) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes;
  const auto add = [&bytes](std::unsigned_integral auto number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  add(kWeightsLayoutVersion);
  for (const WeightTensor& weight : weights) {
    add(std::uint64_t{weight.name.size()});
    bytes += weight.name;
    add(static_cast<std::uint32_t>(weight.type));
    add(weight.rows);
    add(weight.columns);
    add(static_cast<std::uint32_t>(weight.layout));
    add(weight.region_offset_bytes);
  }
  LayoutDigest digest;
  crypto_hash_sha256(digest.data(), reinterpret_cast<const unsigned char*>(bytes.data()),
                     bytes.size());
  return digest;
}

}  // namespace

const WeightTensor* WeightsLayout::find(std::string_view name) const {
  const auto weight = std::ranges::find(weights, name, &WeightTensor::name);
  return weight == weights.end() ? nullptr : &*weight;
}

WeightsLayout assign_weight_offsets(std::vector<WeightTensor> weights) {
  WeightsLayout layout{};
  for (WeightTensor& weight : weights) {
    weight.region_offset_bytes = layout.size_bytes;
    const std::uint64_t end = layout.size_bytes + weight.size_bytes;
    layout.size_bytes = (end + kWeightAlignmentBytes - 1) & ~(kWeightAlignmentBytes - 1);
  }
  layout.weights = std::move(weights);
  layout.digest = digest_of(layout.weights);
  return layout;
}

Result<WeightsLayout> make_weights_layout(const GgufFile& file, const ModelConfig& config,
                                          Arithmetic arithmetic) {
  const std::vector<RequiredTensor> needs = required_tensors(file, config);
  std::vector<WeightTensor> weights;
  for (const RequiredTensor& need : needs)
    weights.push_back(TRY(weight_for(file, config, need, arithmetic)));
  TRY(reject_unused_tensors(file, config, weights));
  return assign_weight_offsets(std::move(weights));
}

Result<void> read_weight(const GgufFile& file, const WeightTensor& weight, std::uint64_t from,
                         std::span<std::byte> destination) {
  if (weight.pieces.empty()) return file.read(*file.find(weight.name), from, destination);
  if (weight.is_transposed) return read_transposed(file, weight, from, destination);
  // A bias has an element for each row of its matrix, so the rows of a part are elements.
  const bool is_part_of_bias = weight.rows == 1 && weight.pieces.front().rows > 1;
  const std::uint64_t row_bytes = row_size_bytes(weight.type, is_part_of_bias ? 1 : weight.columns);
  for (const WeightPiece& piece : weight.pieces) {
    if (destination.empty()) break;
    const std::uint64_t piece_bytes = piece.rows * row_bytes;
    if (from >= piece_bytes) {
      from -= piece_bytes;
      continue;
    }
    const std::size_t count = std::min<std::uint64_t>(piece_bytes - from, destination.size());
    TRY(file.read(*file.find(piece.tensor), piece.first_row * row_bytes + from,
                  destination.first(count)));
    destination = destination.subspan(count);
    from = 0;
  }
  return {};
}

Arithmetic fastest_arithmetic(const WeightsLayout& int8) {
  const auto is_quantised = [](const WeightTensor& weight) {
    return has_row_groups(weight.type) && !weight.is_table;
  };
  const auto is_float = [&](const WeightTensor& weight) {
    return is_quantised(weight) && weight.layout == MatrixLayout::Rows;
  };
  return std::ranges::any_of(int8.weights, is_quantised) &&
                 std::ranges::none_of(int8.weights, is_float)
             ? Arithmetic::Int8
             : Arithmetic::F32;
}

}  // namespace leasehold
