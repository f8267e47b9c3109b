#include "tools/make_model/adapter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>

#include "common/random.hpp"
#include "kernels/model/architecture.hpp"
#include "kernels/quant/dequantize.hpp"
#include "tools/make_model/gguf_writer.hpp"
#include "tools/make_model/partial_file.hpp"
#include "tools/make_model/weights.hpp"

namespace leasehold::make_model {
namespace {

struct TargetRow {
  std::string_view option;
  std::string_view tensor;  ///< Of the weight in the model's file.
  std::string_view module;  ///< Of the weight in a checkpoint.
  bool is_permuted;         ///< Where converters permute the heads' rows.
};
constexpr TargetRow kTargetRows[kTargets] = {
    {"q", "attn_q.weight", "self_attn.q_proj", true},
    {"k", "attn_k.weight", "self_attn.k_proj", true},
    {"v", "attn_v.weight", "self_attn.v_proj", false},
    {"o", "attn_output.weight", "self_attn.o_proj", false},
    {"gate", "ffn_gate.weight", "mlp.gate_proj", false},
    {"up", "ffn_up.weight", "mlp.up_proj", false},
    {"down", "ffn_down.weight", "mlp.down_proj", false},
};

struct AdapterTypeRow {
  std::string_view name;
  TensorType type;
};
constexpr AdapterTypeRow kAdapterTypes[] = {{"f32", TensorType::F32},
                                            {"f16", TensorType::F16},
                                            {"bf16", TensorType::BF16},
                                            {"q8_0", TensorType::Q8_0}};

/// One matrix, packed.
struct Matrix {
  std::string name;
  TensorType type;
  std::uint64_t rows;
  std::uint64_t columns;
  std::vector<std::byte> bytes;
};

/// Both matrices of a weight, with the name of its tensor and module.
struct Pair {
  std::string tensor;
  std::string module;
  Matrix a;                       // [rank, n_in]
  Matrix b;                       // [n_out, rank]
  std::uint32_t permuted_head{};  // rows of a head that converters permute; 0: none
};

std::vector<std::byte> packed(TensorType type, std::span<const float> values) {
  if (type != TensorType::BF16) {
    std::vector<std::byte> bytes(row_size_bytes(type, values.size()));
    pack_weights(type, values, bytes);
    return bytes;
  }
  std::vector<std::byte> bytes;
  for (const float value : values) {
    const auto upper = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
    const auto raw = std::as_bytes(std::span(&upper, 1));
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  }
  return bytes;
}

Matrix make_matrix(TensorType type, std::uint64_t rows, std::uint64_t columns,
                   std::uint64_t stream) {
  if (columns % block_shape(type).elements != 0) type = TensorType::F16;
  std::vector<float> values(rows * columns);
  fill_weights({.name = "", .rows = rows, .columns = columns}, stream, 0, values);
  return {
      .name = "", .type = type, .rows = rows, .columns = columns, .bytes = packed(type, values)};
}

/// The weight of a layer that a target changes; null if the layer has none.
const TensorSpec* find_spec(const ModelRequest& model, const ModelConfig& config,
                            std::uint32_t layer, const TargetRow& target) {
  const auto named = [&](std::span<const TensorSpec> specs) -> const TensorSpec* {
    const auto spec = std::ranges::find(specs, target.tensor, &TensorSpec::name);
    const bool has = spec != specs.end() && dimension(spec->rows, config, layer) > 0 &&
                     dimension(spec->columns, config, layer) > 0;
    return has ? &*spec : nullptr;
  };
  if (const auto* spec = named(mixer_tensors(model.row(), config.layers[layer].mixer))) return spec;
  return config.layers[layer].n_ff > 0 ? named(model.row().feed_forward) : nullptr;
}

std::vector<Pair> make_pairs(const AdapterRequest& request) {
  const ModelConfig config = request.model.dimensions();
  std::vector<Pair> pairs;
  std::uint64_t number = 0;
  for (std::uint32_t layer = 0; layer < config.n_layers; ++layer) {
    for (std::size_t i = 0; i < kTargets; ++i, number += 2) {
      const TensorSpec* spec = find_spec(request.model, config, layer, kTargetRows[i]);
      if (spec == nullptr || request.ranks[i] == 0) continue;
      const bool is_permuted = kTargetRows[i].is_permuted && request.model.row().permutes_heads;
      pairs.push_back(
          {.tensor = fmt::format("blk.{}.{}", layer, kTargetRows[i].tensor),
           .module = fmt::format("model.layers.{}.{}", layer, kTargetRows[i].module),
           .a = make_matrix(request.type, request.ranks[i], dimension(spec->columns, config, layer),
                            random_at(request.seed, number)),
           .b = make_matrix(request.type, dimension(spec->rows, config, layer), request.ranks[i],
                            random_at(request.seed, number + 1)),
           .permuted_head = is_permuted ? config.layers[layer].head_dim : 0});
    }
  }
  return pairs;
}

/// The matrices in file order, with their names.
std::vector<Matrix> gguf_matrices(std::vector<Pair> pairs) {
  std::vector<Matrix> all;
  for (Pair& pair : pairs) {
    pair.a.name = pair.tensor + ".lora_a";
    pair.b.name = pair.tensor + ".lora_b";
    all.push_back(std::move(pair.a));
    all.push_back(std::move(pair.b));
  }
  return all;
}

std::vector<PlannedTensor> plan_of(std::span<const Matrix> matrices) {
  std::vector<PlannedTensor> plan;
  std::uint64_t offset = 0;
  for (const Matrix& matrix : matrices) {
    plan.push_back({.name = matrix.name,
                    .rows = matrix.rows,
                    .columns = matrix.columns,
                    .type = matrix.type,
                    .offset = offset});
    offset += align_up(matrix.bytes.size());
  }
  return plan;
}

Result<std::uint64_t> write_gguf(const AdapterRequest& request, std::vector<Pair> pairs,
                                 const std::string& path) {
  Metadata metadata;
  metadata.add("general.architecture", request.model.architecture);
  metadata.add("general.type", std::string_view("adapter"));
  metadata.add("general.alignment", static_cast<std::uint32_t>(kAlignment));
  metadata.add("adapter.type", std::string_view("lora"));
  metadata.add("adapter.lora.alpha", request.alpha);
  const std::vector<Matrix> matrices = gguf_matrices(std::move(pairs));
  const std::vector<PlannedTensor> plan = plan_of(matrices);
  const std::vector<std::byte> header = assemble_header(metadata, plan);
  PartialFile file = TRY(PartialFile::create(path, header.size() + data_size_bytes(plan)));
  TRY(file.append(header));
  for (const Matrix& matrix : matrices) {
    TRY(file.append(matrix.bytes));
    TRY(file.append(std::vector<std::byte>(align_up(matrix.bytes.size()) - matrix.bytes.size())));
  }
  const std::uint64_t size_bytes = file.size_bytes();
  TRY(file.finish());
  return size_bytes;
}

/// The matrix as PEFT has it: in floats instead of blocks, and with the rows of each head in the
/// order of a checkpoint, where row t · head / 2 + i is row 2i + t of the model.
Matrix in_peft(Matrix matrix, std::uint32_t permuted_head) {
  if (matrix.type == TensorType::Q8_0) {
    std::vector<float> values(matrix.rows * matrix.columns);
    dequantize_row(matrix.type, matrix.bytes.data(), values.data(), values.size());
    matrix.type = TensorType::F32;
    matrix.bytes = packed(matrix.type, values);
  }
  if (permuted_head == 0) return matrix;
  const std::uint64_t row_bytes = row_size_bytes(matrix.type, matrix.columns);
  const std::uint64_t half = permuted_head / 2;
  std::vector<std::byte> ordered;
  for (std::uint64_t row = 0; row < matrix.rows; ++row) {
    const std::uint64_t in_head = row % permuted_head;
    const std::uint64_t from = row - in_head + in_head % half * 2 + in_head / half;
    const auto bytes = std::span(matrix.bytes).subspan(from * row_bytes, row_bytes);
    ordered.insert(ordered.end(), bytes.begin(), bytes.end());
  }
  matrix.bytes = std::move(ordered);
  return matrix;
}

std::string safetensors_header(std::span<const Matrix> matrices) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::uint64_t end = 0;
  for (const Matrix& matrix : matrices) {
    const std::uint64_t begin = std::exchange(end, end + matrix.bytes.size());
    header[matrix.name] = {{"dtype", name(matrix.type)},
                           {"shape", {matrix.rows, matrix.columns}},
                           {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

std::string peft_config(const AdapterRequest& request) {
  const std::uint32_t most = std::ranges::max(request.ranks);
  nlohmann::ordered_json config = {{"peft_type", "LORA"},
                                   {"task_type", "CAUSAL_LM"},
                                   {"r", most},
                                   {"lora_alpha", request.alpha},
                                   {"bias", "none"},
                                   {"use_rslora", false},
                                   {"use_dora", false},
                                   {"rank_pattern", nlohmann::ordered_json::object()},
                                   {"alpha_pattern", nlohmann::ordered_json::object()},
                                   {"target_modules", nlohmann::ordered_json::array()}};
  for (std::size_t i = 0; i < kTargets; ++i) {
    const std::string module(kTargetRows[i].module.substr(kTargetRows[i].module.find('.') + 1));
    if (request.ranks[i] > 0) config["target_modules"].push_back(module);
    if (request.ranks[i] > 0 && request.ranks[i] != most)
      config["rank_pattern"][module] = request.ranks[i];
  }
  return config.dump(2) + "\n";
}

Result<std::uint64_t> write_text(const std::string& path, std::string_view text) {
  PartialFile file = TRY(PartialFile::create(path, text.size()));
  TRY(file.append(std::as_bytes(std::span(text))));
  TRY(file.finish());
  return text.size();
}

Result<std::uint64_t> write_safetensors(const std::vector<Matrix>& matrices,
                                        const std::string& path) {
  const std::string header = safetensors_header(matrices);
  const std::uint64_t header_bytes = header.size();
  std::uint64_t size_bytes = sizeof header_bytes + header_bytes;
  for (const Matrix& matrix : matrices) size_bytes += matrix.bytes.size();
  PartialFile file = TRY(PartialFile::create(path, size_bytes));
  TRY(file.append(std::as_bytes(std::span(&header_bytes, 1))));
  TRY(file.append(std::as_bytes(std::span(header))));
  for (const Matrix& matrix : matrices) TRY(file.append(matrix.bytes));
  TRY(file.finish());
  return size_bytes;
}

Result<std::uint64_t> write_peft(const AdapterRequest& request, std::vector<Pair> pairs,
                                 const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail_file("creating " + path, error.value());
  std::vector<Matrix> matrices;
  for (Pair& pair : pairs) {
    matrices.push_back(in_peft(std::move(pair.a), 0));
    matrices.back().name = fmt::format("base_model.model.{}.lora_A.weight", pair.module);
    matrices.push_back(in_peft(std::move(pair.b), pair.permuted_head));
    matrices.back().name = fmt::format("base_model.model.{}.lora_B.weight", pair.module);
  }
  const std::uint64_t of_config =
      TRY(write_text(path + "/adapter_config.json", peft_config(request)));
  const std::uint64_t of_matrices =
      TRY(write_safetensors(matrices, path + "/adapter_model.safetensors"));
  return of_config + of_matrices;
}

/// A number of 1 to 3 digits.
std::optional<std::uint32_t> rank_from(std::string_view text) {
  const bool is_number = !text.empty() && text.size() <= 3 &&
                         text.find_first_not_of("0123456789") == std::string_view::npos;
  return is_number ? std::optional(static_cast<std::uint32_t>(std::stoul(std::string(text))))
                   : std::nullopt;
}

}  // namespace

ModelRequest base_of(const ModelConfig& config) {
  return {.architecture = config.architecture,
          .shape = {.layers = config.n_layers,
                    .embd = config.n_embd,
                    .heads = config.n_heads,
                    .kv_heads = config.n_kv_heads,
                    .ffn = config.n_ff,
                    .vocab = config.n_vocab,
                    .context = config.n_context,
                    .head_width = config.head_dim}};
}

Result<TargetRanks> ranks_from(std::string_view text) {
  TargetRanks ranks{};
  if (const auto all = rank_from(text)) {
    ranks.fill(*all);
    return ranks;
  }
  for (const auto part : std::views::split(text, ',')) {
    const std::string_view assignment(part.begin(), part.end());
    const std::size_t equals = std::min(assignment.find('='), assignment.size());
    const auto* target =
        std::ranges::find(kTargetRows, assignment.substr(0, equals), &TargetRow::option);
    const auto rank = rank_from(assignment.substr(std::min(equals + 1, assignment.size())));
    if (target == std::end(kTargetRows) || !rank)
      return fail(Errc::BadRequest, fmt::format("--adapter {}: give a rank, or ranks of q, k, v, "
                                                "o, gate, up and down as in q=8,v=8",
                                                text));
    ranks[static_cast<std::size_t>(target - kTargetRows)] = *rank;
  }
  return ranks;
}

Result<TensorType> adapter_type_from(std::string_view text) {
  const auto* row = std::ranges::find(kAdapterTypes, text, &AdapterTypeRow::name);
  if (row != std::end(kAdapterTypes)) return row->type;
  return fail(Errc::BadRequest, fmt::format("--adapter-type '{}' is unknown; choose one of f32, "
                                            "f16, bf16, q8_0",
                                            text));
}

Result<std::uint64_t> write_adapter(const AdapterRequest& request, const std::string& path) {
  TRY(check(request.model));
  std::vector<Pair> pairs = make_pairs(request);
  if (pairs.empty())
    return fail(Errc::BadRequest,
                "--adapter changes no weight of this model; give ranks above 0 "
                "and a model with dense layers");
  return request.form == AdapterForm::Gguf ? write_gguf(request, std::move(pairs), path)
                                           : write_peft(request, std::move(pairs), path);
}

}  // namespace leasehold::make_model
