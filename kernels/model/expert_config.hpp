/// Reads the experts of a model: their number and widths, how they are chosen and weighted.
#pragma once

#include <cstdint>

#include "common/result.hpp"
#include "kernels/model/config.hpp"

namespace leasehold {

class ArchitectureKeys;
class GgufFile;
struct Architecture;

/// The width of what experts read and write, if it is not that of the model.
inline constexpr const char* kLatentSize = "moe_latent_size";

/// `n_ff` is the width of the feed-forwards, 0 if the file has none. Without experts every count is
/// 0. Precondition: `config` has its layers and tokens. Errors: FileCorrupt and UnsupportedModel
/// naming the key.
Result<ExpertConfig> read_experts(const GgufFile& file, const ArchitectureKeys& keys,
                                  const Architecture& architecture, const ModelConfig& config,
                                  std::uint32_t n_ff);

}  // namespace leasehold
