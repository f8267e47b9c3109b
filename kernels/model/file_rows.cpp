#include "kernels/model/file_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace leasehold {
namespace {

/// Parts of the names of the tensors that may be joined, in the order of their rows.
constexpr std::string_view kJoinedParts[] = {"attn_q.", "attn_k.", "attn_v."};

/// The name of the tensor that has the rows of tensor `name` among those of the others; empty if
/// the file has none.
std::string joined_name(const GgufFile& file, const ModelConfig& config, const std::string& name) {
  const auto* part = std::ranges::find_if(
      kJoinedParts, [&](std::string_view each) { return name.contains(each); });
  if (part == std::end(kJoinedParts) || config.latent.rank > 0) return {};
  const auto named = [&](std::string_view other) {
    return std::string(name).replace(name.find(*part), part->size(), other);
  };
  if (std::ranges::any_of(kJoinedParts, [&](auto each) { return file.find(named(each)); }))
    return {};
  const std::string joined = named("attn_qkv.");
  return file.find(joined) != nullptr ? joined : std::string();
}

}  // namespace

Result<const GgufTensor*> find_tensor(const GgufFile& file, const std::string& name,
                                      std::uint32_t rows, std::uint32_t columns) {
  const GgufTensor* tensor = TRY(file.tensor(name));
  if (tensor->columns() == columns && tensor->rows() == rows) return tensor;
  return fail(Errc::FileCorrupt,
              fmt::format("{}: tensor {} has {} rows of {}; the metadata makes it {} rows of {}",
                          file.path(), name, tensor->rows(), tensor->columns(), rows, columns));
}

bool has_tensor(const GgufFile& file, const ModelConfig& config, const std::string& name) {
  return file.find(name) != nullptr || !joined_name(file, config, name).empty();
}

Result<FileRows> find_rows(const GgufFile& file, const ModelConfig& config, std::uint32_t layer,
                           const std::string& name, std::uint32_t rows, std::uint32_t columns) {
  const std::string joined = joined_name(file, config, name);
  if (joined.empty()) return FileRows{.tensor = TRY(find_tensor(file, name, rows, columns))};
  const LayerConfig& shape = config.layers[layer];
  const std::uint32_t keys = shape.n_kv_heads * shape.head_dim;
  const std::uint32_t queries = config.n_heads * shape.head_dim * (config.gates_attention ? 2 : 1);
  const std::uint32_t all = queries + 2 * keys;
  const bool is_vector = name.ends_with(".bias");
  const GgufTensor* tensor =
      TRY(find_tensor(file, joined, is_vector ? 1 : all, is_vector ? all : columns));
  const std::uint32_t first = name.contains(kJoinedParts[0])   ? 0
                              : name.contains(kJoinedParts[1]) ? queries
                                                               : queries + keys;
  return FileRows{.tensor = tensor, .first = first, .is_joined = true};
}

}  // namespace leasehold
