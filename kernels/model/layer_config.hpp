/// Reads the heads of each layer, and whose keys and values a layer reads.
#pragma once

#include "common/result.hpp"

namespace leasehold {

class ArchitectureKeys;
struct ModelConfig;

/// The last layers that store no keys and values.
inline constexpr const char* kSharedLayers = "attention.shared_kv_layers";

/// Reads n_heads, n_kv_heads, head_dim, and the same of each layer. Precondition: `config` has its
/// layers, windows and n_embd.
/// Errors: FileCorrupt and UnsupportedModel naming the key.
Result<void> read_attention(const ArchitectureKeys& keys, ModelConfig& config);

}  // namespace leasehold
