/// Names of the KV cache's element types, the block layout of a model for a type, and the layout of
/// its recurrent state in such blocks.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "kernels/kv_layout.hpp"
#include "kernels/model/config.hpp"
#include "kernels/model/weights_layout.hpp"
#include "kernels/state_layout.hpp"

namespace leasehold {

/// "f16", "f32", "q8_0": the values of --kv-type.
std::string_view name(KvType type);
std::optional<KvType> kv_type_from_name(std::string_view text);
/// All names, the default first.
const std::vector<std::string>& kv_type_names();

/// The worker's arithmetic and KV type, which its tokens depend on, as one announced text: "int8"
/// with a KV cache of f16, "int8+f32" or "int8+q8_0" with another type.
std::string announced_arithmetic(Arithmetic arithmetic, KvType type);

/// The layout of a model's blocks, which are large enough for each piece of its recurrent state.
/// Precondition: can_store(type, head_dim) of every layer.
KvLayout kv_layout(const ModelConfig& config, KvType type);
/// The layout of the model's recurrent state in blocks of `kv`, which is that of the same model.
StateLayout state_layout(const ModelConfig& config, const KvLayout& kv);
/// True if a layer of the model keeps a recurrent state.
bool has_recurrent_state(const ModelConfig& config);
/// The blocks of a copy of the recurrent state in blocks of the smallest size; larger blocks need
/// no more of them. 0 without a recurrent state.
std::uint32_t most_state_blocks(const ModelConfig& config);
/// Like `kv_layout`, for a type that the user chose.
/// Errors: BadRequest if the model's heads cannot be stored as `type`.
Result<KvLayout> kv_layout_of(const ModelConfig& config, KvType type);

}  // namespace leasehold
