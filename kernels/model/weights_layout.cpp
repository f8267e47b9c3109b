#include "kernels/model/weights_layout.hpp"

#include <fmt/format.h>
#include <sodium/crypto_hash_sha256.h>

#include <algorithm>
#include <bit>
#include <concepts>

#include "common/expects.hpp"
#include "kernels/model/architecture.hpp"
#include "kernels/quant/row_group.hpp"

namespace leasehold {
namespace {

constexpr TensorSpec kEmbedding = {"token_embd.weight", TensorDim::Embedding,
                                   TensorDim::Vocabulary};
constexpr TensorSpec kOutputNorm = {"output_norm.weight", TensorDim::Embedding, TensorDim::One};
constexpr TensorSpec kOutput = {"output.weight", TensorDim::Embedding, TensorDim::Vocabulary};

std::uint32_t dim_of(TensorDim width, const ModelConfig& config) {
  switch (width) {
    case TensorDim::One:
      return 1;
    case TensorDim::Embedding:
      return config.n_embd;
    case TensorDim::Query:
      return config.n_heads * config.head_dim;
    case TensorDim::KeyValue:
      return config.n_kv_heads * config.head_dim;
    case TensorDim::Head:
      return config.head_dim;
    case TensorDim::FeedForward:
      return config.n_ff;
    case TensorDim::Experts:
      return config.experts.n_experts;
    case TensorDim::ExpertFeedForward:
      return config.experts.n_ff;
    case TensorDim::Vocabulary:
      return config.n_vocab;
  }
  return 0;
}

/// A tensor that a model needs, with its name in the file.
struct RequiredTensor {
  std::string name;
  TensorSpec rule;
};

/// Adds the required tensors of a layer and the optional ones that the file has.
void add_layer(const GgufFile& file, std::uint32_t layer, std::span<const TensorSpec> rules,
               std::vector<RequiredTensor>& needs) {
  for (const TensorSpec& rule : rules) {
    std::string name = fmt::format("blk.{}.{}", layer, rule.name);
    const bool is_omitted = rule.presence == Presence::Optional && file.find(name) == nullptr;
    if (!is_omitted) needs.push_back({std::move(name), rule});
  }
}

std::vector<RequiredTensor> required_tensors(const GgufFile& file, const ModelConfig& config) {
  const Architecture* architecture = find_architecture(config.architecture);
  expects(architecture != nullptr, "a config names an architecture of the table");
  std::vector<RequiredTensor> needs = {{std::string(kEmbedding.name), kEmbedding}};
  const bool has_experts = config.experts.n_experts > 0;
  for (std::uint32_t layer = 0; layer < config.n_layers; ++layer) {
    add_layer(file, layer, architecture->attention, needs);
    add_layer(file, layer, has_experts ? architecture->experts : architecture->feed_forward, needs);
  }
  needs.push_back({std::string(kOutputNorm.name), kOutputNorm});
  if (!config.tied_embeddings) needs.push_back({std::string(kOutput.name), kOutput});
  return needs;
}

/// A group contains rows of one matrix only, so rows of expert matrices are grouped only if they
/// form whole groups.
MatrixLayout layout_for(const RequiredTensor& need, TensorType type, std::uint32_t rows_per_matrix,
                        Arithmetic arithmetic) {
  const bool is_matrix = need.rule.rows != TensorDim::One;
  const bool fits = need.rule.presence != Presence::PerExpert || rows_per_matrix % kGroupRows == 0;
  return arithmetic == Arithmetic::Int8 && is_matrix && has_row_groups(type) && fits
             ? MatrixLayout::RowGroups
             : MatrixLayout::Rows;
}

Result<WeightTensor> weight_for(const GgufFile& file, const ModelConfig& config,
                                const RequiredTensor& need, Arithmetic arithmetic) {
  const GgufTensor* tensor = file.find(need.name);
  if (tensor == nullptr)
    return fail(Errc::MissingWeight, fmt::format("{}: has no tensor {}", file.path(), need.name));
  const std::uint32_t columns = dim_of(need.rule.columns, config);
  const std::uint32_t matrices =
      need.rule.presence == Presence::PerExpert ? config.experts.n_experts : 1;
  const std::uint32_t rows = dim_of(need.rule.rows, config) * matrices;
  if (tensor->columns() != columns || tensor->rows() != rows)
    return fail(
        Errc::FileCorrupt,
        fmt::format("{}: tensor {} has {} rows of {}; the metadata makes it {} rows of {}",
                    file.path(), need.name, tensor->rows(), tensor->columns(), rows, columns));
  if (need.rule.rows == TensorDim::One && tensor->type != TensorType::F32)
    return fail(Errc::UnsupportedModel, fmt::format("{}: vector {} is {}; this build reads F32",
                                                    file.path(), need.name, name(tensor->type)));
  const MatrixLayout layout = layout_for(need, tensor->type, rows / matrices, arithmetic);
  const std::uint64_t size_bytes = layout == MatrixLayout::RowGroups
                                       ? row_groups(rows) * row_group_bytes(tensor->type, columns)
                                       : tensor->size_bytes;
  return WeightTensor{.name = need.name,
                      .type = tensor->type,
                      .rows = rows,
                      .columns = columns,
                      .layout = layout,
                      .size_bytes = size_bytes};
}

Result<void> reject_unused_tensors(const GgufFile& file, const std::vector<RequiredTensor>& needs) {
  for (const GgufTensor& tensor : file.tensors()) {
    if (tensor.name == kRopeFreqFactors) continue;  // part of the config (rope_config.hpp)
    if (std::ranges::find(needs, tensor.name, &RequiredTensor::name) == needs.end())
      return fail(Errc::UnsupportedModel,
                  fmt::format("{}: tensor {} is not used by this build", file.path(), tensor.name));
  }
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
  TRY(reject_unused_tensors(file, needs));
  return assign_weight_offsets(std::move(weights));
}

Arithmetic fastest_arithmetic(const WeightsLayout& int8) {
  const auto is_quantised = [](const WeightTensor& weight) { return has_row_groups(weight.type); };
  const auto is_float = [&](const WeightTensor& weight) {
    return is_quantised(weight) && weight.layout == MatrixLayout::Rows;
  };
  return std::ranges::any_of(int8.weights, is_quantised) &&
                 std::ranges::none_of(int8.weights, is_float)
             ? Arithmetic::Int8
             : Arithmetic::F32;
}

}  // namespace leasehold
