#include "kernels/model/weights_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace leasehold {
namespace {

constexpr std::array<std::string_view, 3> kScopeNames = {"model", "layer", "tensor"};

/// "blk.3.attn_q.weight" → "blk.3". The tensors before and after the layers are separate parts.
std::string layer_of(std::string_view tensor) {
  if (!tensor.starts_with("blk.")) {
    return std::string(tensor.starts_with("token_embd") ? "token_embd" : "output");
  }
  return std::string(tensor.substr(0, tensor.find('.', 4)));
}

std::string part_of(const WeightTensor& weight, WeightsScope scope) {
  switch (scope) {
    case WeightsScope::Model:
      return "model";
    case WeightsScope::Layer:
      return layer_of(weight.name);
    case WeightsScope::Tensor:
      return weight.name;
  }
  return weight.name;
}

}  // namespace

std::string_view name(WeightsScope scope) {
  return kScopeNames[static_cast<std::size_t>(scope)];
}

std::optional<WeightsScope> weights_scope_from_name(std::string_view text) {
  const auto* found = std::ranges::find(kScopeNames, text);
  if (found == kScopeNames.end()) return std::nullopt;
  return static_cast<WeightsScope>(found - kScopeNames.begin());
}

std::uint64_t WeightsPlan::size_bytes() const {
  std::uint64_t sum = 0;
  for (const WeightsPart& part : parts) sum += part.layout.size_bytes;
  return sum;
}

WeightsPlan make_weights_plan(const WeightsLayout& whole, WeightsScope scope) {
  std::vector<std::pair<std::string, std::vector<WeightTensor>>> groups;
  for (const WeightTensor& weight : whole.weights) {
    std::string part = part_of(weight, scope);
    if (groups.empty() || groups.back().first != part)
      groups.emplace_back(std::move(part), std::vector<WeightTensor>{});
    groups.back().second.push_back(weight);
  }
  WeightsPlan plan;
  for (auto& [part, weights] : groups) {
    plan.parts.push_back({.name = part, .layout = assign_weight_offsets(std::move(weights))});
  }
  return plan;
}

Result<ChosenPlan> choose_weights_plan(const GgufFile& file, const ModelConfig& config,
                                       std::optional<Arithmetic> wanted, WeightsScope scope) {
  const Arithmetic first = wanted.value_or(Arithmetic::Int8);
  WeightsLayout layout = TRY(make_weights_layout(file, config, first));
  const Arithmetic chosen = wanted.value_or(fastest_arithmetic(layout));
  if (chosen != first) layout = TRY(make_weights_layout(file, config, chosen));
  return ChosenPlan{make_weights_plan(layout, scope), chosen};
}

}  // namespace leasehold
