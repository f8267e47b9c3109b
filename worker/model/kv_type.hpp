/// The element types of the KV cache by name, and the models whose heads can be stored so.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "kernels/op_args.hpp"
#include "worker/model/config.hpp"
#include "worker/model/weights_layout.hpp"

namespace leasehold {

/// "f16", "f32", "q8_0", as --kv-type takes them.
std::string_view name(KvType type);
std::optional<KvType> kv_type_from_name(std::string_view text);
/// All names, the default first.
const std::vector<std::string>& kv_type_names();

/// What the tokens of a worker depend on, as it announces it: "int8" with a KV cache of f16,
/// "int8+f32" or "int8+q8_0" with another one.
std::string announced_arithmetic(Arithmetic arithmetic, KvType type);

/// The layout of a model's blocks. Precondition: can_store(type, config.head_dim).
KvLayout kv_layout(const ModelConfig& config, KvType type);
/// Likewise, for a type that was asked for.
/// Errors: BadRequest if its heads cannot be stored as `type`.
Result<KvLayout> kv_layout_of(const ModelConfig& config, KvType type);

}  // namespace leasehold
