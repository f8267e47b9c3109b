/// A model's weights cut into parts: each is its own region, under its own engine lease.
///
///   scope    parts
///   model    "model"
///   layer    "token_embd", "blk.0", "blk.1" …, "output" (its norm, and the matrix if there is one)
///   tensor   one for each, by the tensor's name: "blk.0.attn_q.weight"
///
/// The finer the cut, the less is lost with one lease and read again afterwards. The order of parts
/// is that of the layout, whatever the scope.
#pragma once

#include <optional>

#include "worker/model/weights_layout.hpp"

namespace leasehold {

enum class WeightsScope : std::uint8_t { Model, Layer, Tensor };

/// "model", "layer", "tensor"
std::string_view name(WeightsScope scope);
std::optional<WeightsScope> weights_scope_from_name(std::string_view text);

struct WeightsPart {
  std::string name;
  WeightsLayout layout;  ///< Of this part's own region; offsets start at 0.
};

struct WeightsPlan {
  std::vector<WeightsPart> parts;

  std::uint64_t size_bytes() const;  ///< Of all regions together.
};

/// Two workers of one build that cut alike share every part; so do parts of different scopes that
/// hold the same tensors, for the digest of a part covers its tensors and not the scope.
WeightsPlan make_weights_plan(const WeightsLayout& whole, WeightsScope scope);

/// The file can stand in for the one `part` was planned from: it has the part's tensors in the same
/// types and shapes. Errors: MissingWeight naming the tensor, what it is there and what it must be.
Result<void> check_compatible(const GgufFile& file, const WeightsPart& part);

}  // namespace leasehold
