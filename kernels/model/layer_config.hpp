/// Reads the heads of each layer, and whose keys and values a layer reads.
#pragma once

#include "common/result.hpp"

namespace leasehold {

class ArchitectureKeys;
class GgufFile;
struct Architecture;
struct ModelConfig;

/// The last layers that store no keys and values.
inline constexpr const char* kSharedLayers = "attention.shared_kv_layers";

/// Reads n_heads, n_kv_heads, head_dim, the same of each layer, and the shape of latent attention.
/// Precondition: `config` has its layers, windows and n_embd. Errors: FileCorrupt and
/// UnsupportedModel naming the key.
Result<void> read_attention(const GgufFile& file, const ArchitectureKeys& keys,
                            const Architecture& architecture, ModelConfig& config);

}  // namespace leasehold
