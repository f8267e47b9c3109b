/// Writes LoRA adapters of made models, with seeded matrices: a GGUF file, or the same adapter as a
/// folder in the form of PEFT. Both give the same bits once they are read.
///
/// The deviation of B·(A·x) is that of x, and α / rank scales it.
/// Source: the keys of convert_lora_to_gguf (llama.cpp), LoraConfig of PEFT, the format of
/// safetensors.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "tools/make_model/model_shape.hpp"

namespace leasehold::make_model {

/// q, k, v, o, gate, up, down
inline constexpr std::size_t kTargets = 7;
/// The rank of each target's matrices; 0: none.
using TargetRanks = std::array<std::uint32_t, kTargets>;

enum class AdapterForm : std::uint8_t {
  Gguf,
  /// The folder has the order of a checkpoint, and floats instead of quantised matrices.
  Peft,
};

/// Everything that determines the bytes of an adapter.
struct AdapterRequest {
  ModelRequest model;  ///< Of the base; its type and seed do not matter.
  TargetRanks ranks{};
  /// F32, F16, BF16 or Q8_0. A matrix whose rows are not whole blocks of Q8_0 is F16.
  TensorType type = TensorType::F16;
  float alpha = 2.0F;
  std::uint64_t seed = 1;
  AdapterForm form = AdapterForm::Gguf;
};

/// The base of adapters of a model whose layers are alike. `config` outlives the result.
ModelRequest base_of(const ModelConfig& config);

/// Parses "16", for every target, or ranks by target: "q=8,v=4". Errors: BadRequest.
Result<TargetRanks> ranks_from(std::string_view text);
/// Parses "f32", "f16", "bf16" or "q8_0". Errors: BadRequest.
Result<TensorType> adapter_type_from(std::string_view text);

/// Writes the adapter to `path`, a file or a folder, and returns its size in bytes. Layers without
/// a dense weight have no matrices for it. Errors: BadRequest if no weight has any, or for an
/// invalid base; those of PartialFile.
Result<std::uint64_t> write_adapter(const AdapterRequest& request, const std::string& path);

}  // namespace leasehold::make_model
