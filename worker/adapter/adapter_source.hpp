/// The tensors of an adapter file, and which weight of the model each pair of them changes. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "kernels/model/config.hpp"
#include "worker/adapter/adapter_layout.hpp"

namespace leasehold {

/// A matrix as the file has it.
struct FileMatrix {
  std::string name;  ///< Of the tensor, for messages.
  TensorType type = TensorType::F32;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::uint64_t offset = 0;  ///< Byte in the file where the data starts.

  std::uint64_t size_bytes() const { return rows * row_size_bytes(type, columns); }
};

/// The two matrices of a weight in the file.
struct AdapterSource {
  FileMatrix a;  ///< [rank, n_in]
  FileMatrix b;  ///< [n_out, rank]
  /// The rows of B are those of heads of this many rows in the order of a checkpoint, and the model
  /// permutes them (see Architecture::permutes_heads); 0: they have the model's order.
  std::uint32_t permuted_head = 0;
};

/// A matrix of a file with the weight that it belongs to.
struct FoundMatrix {
  std::uint32_t layer = 0;
  AdapterTarget target = AdapterTarget::Query;
  AdapterHalf half = AdapterHalf::A;
  FileMatrix matrix;
};

/// Reads the name of a tensor in a GGUF adapter, "blk.N.attn_q.weight.lora_a". The matrix is left
/// empty. Returns nothing for any other name.
std::optional<FoundMatrix> found_in_gguf(std::string_view name);

/// Reads the name of a tensor that PEFT wrote,
/// "base_model.model.model.layers.N.self_attn.q_proj.lora_A.weight".
std::optional<FoundMatrix> found_in_peft(std::string_view name);

/// The module of such a tensor as PEFT's patterns see it: "model.layers.N.self_attn.q_proj".
std::string_view peft_module(std::string_view tensor_name);

/// A weight that an adapter changes, and where its matrices are.
struct AdapterPair {
  AdaptedWeight weight;
  AdapterSource source;
};

/// Pairs the matrices and compares them with the model: each weight exists in its layer, has both
/// matrices, of its widths and of one rank, at most `max_rank`. Scales are left 0. Pairs are in the
/// order of layers and targets. `is_checkpoint`: query and key rows have the order of a checkpoint.
/// Errors: MissingWeight, UnsupportedModel, FileCorrupt, naming the tensor and `path`.
Result<std::vector<AdapterPair>> pair_matrices(std::vector<FoundMatrix> found,
                                               const ModelConfig& config, std::uint32_t max_rank,
                                               bool is_checkpoint, std::string_view path);

/// The memory of an adapter that changes every weight it can, with matrices of this rank in F32.
std::uint64_t largest_adapter_bytes(const ModelConfig& config, std::uint32_t rank);

}  // namespace leasehold
