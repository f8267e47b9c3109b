/// A model's weights divided into parts. Each part has its own region and engine lease.
///
///   scope    parts
///   model    "model"
///   layer    "token_embd", "blk.0", "blk.1" …, "output" (its norm, and the matrix if there is one)
///   tensor   one per tensor, by its name: "blk.0.attn_q.weight"
///
/// With smaller parts, a revoked lease loses fewer weights, and fewer are read again. Parts are in
/// layout order in every scope.
#pragma once

#include <optional>

#include "kernels/model/weights_layout.hpp"

namespace leasehold {

enum class WeightsScope : std::uint8_t { Model, Layer, Tensor };

/// "model", "layer", "tensor"
std::string_view name(WeightsScope scope);
std::optional<WeightsScope> weights_scope_from_name(std::string_view text);

struct WeightsPart {
  std::string name;
  WeightsLayout layout;  ///< Layout of this part's region; offsets start at 0.
};

struct WeightsPlan {
  std::vector<WeightsPart> parts;

  std::uint64_t size_bytes() const;  ///< Total size of all regions.
};

/// Workers of one build with the same scope share every part. Parts of different scopes with the
/// same tensors are shared too, because the digest of a part covers its tensors, not the scope.
WeightsPlan make_weights_plan(const WeightsLayout& whole, WeightsScope scope);

struct ChosenPlan {
  WeightsPlan plan;
  Arithmetic arithmetic;
};
/// Makes a plan for a CPU, in the arithmetic `wanted` or, without it, in the fastest. Errors: those
/// of make_weights_layout.
Result<ChosenPlan> choose_weights_plan(const GgufFile& file, const ModelConfig& config,
                                       std::optional<Arithmetic> wanted, WeightsScope scope);

}  // namespace leasehold
