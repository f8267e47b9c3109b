/// The choice of the experts that process a row, and their weights, from the row's router scores.
///
/// The *probability* of an expert is its softmax over all experts, or the sigmoid of its score. The
/// choice is by score, or by the sum of probability and bias if the model has a selection bias.
/// Weights are probabilities without bias.
///
/// With groups of experts the choice is by that sum as well, among the experts of the best groups.
/// A group counts as much as its two best experts together.
///
/// Source: Shazeer et al. 2017 (top-k gating); Jiang et al. 2024 (Mixtral): the weights of the
/// chosen experts are their shares among the chosen, which is the softmax over these alone. Models
/// of the Qwen2 family use their shares among all experts. DeepSeek-AI 2024 (V3): sigmoid,
/// selection bias and groups.
///
/// Ties choose the lower index, so the choice is the same on every path. NaN ranks below every
/// number; even then n_used different experts are chosen. C++20-clean.
#pragma once

#include <cstdint>

#include "kernels/numerics/exp.hpp"
#include "kernels/numerics/host_device.hpp"
#include "kernels/numerics/ordered_sum.hpp"
#include "kernels/op_args.hpp"

namespace leasehold {

/// The least sum of probabilities that normalised weights are divided by. Source: llama.cpp.
inline constexpr float kLeastProbabilitySum = 0x1p-14F;

/// An expert with the number that the choice compares.
struct RankedExpert {
  float key;
  std::uint32_t expert;
};

/// Whether `a` ranks before `b`.
LEASEHOLD_HD inline bool ranks_before(RankedExpert a, RankedExpert b) {
  const bool a_is_number = a.key == a.key;
  const bool b_is_number = b.key == b.key;
  if (!a_is_number || !b_is_number)
    return a_is_number == b_is_number ? a.expert < b.expert : a_is_number;
  return a.key != b.key ? a.key > b.key : a.expert < b.expert;
}

/// The router scores of a row. Exponents are relative to the highest score, so nothing overflows.
struct RoutedRow {
  const float* scores;  // [n_experts]
  const float* bias;    // [n_experts], or null
  ExpertGating gating;
  float highest_score = 0;  // used with a softmax
  float total = 1;          // sum of all terms of a softmax; 1 if it is not needed
  /// Bit g: experts of group g may be chosen.
  std::uint32_t allowed_groups = ~std::uint32_t{0};
  std::uint32_t group_size = 0;  // 0: experts are not grouped

  /// The expert's probability, times `total`.
  LEASEHOLD_HD float term(std::uint32_t expert) const {
    return gating == ExpertGating::Sigmoid ? sigmoid(scores[expert])
                                           : exp_f32(scores[expert] - highest_score);
  }
  LEASEHOLD_HD RankedExpert by_score(std::uint32_t expert) const {
    return {.key = scores[expert], .expert = expert};
  }
  LEASEHOLD_HD bool needs_probabilities() const { return bias != nullptr || group_size != 0; }
  LEASEHOLD_HD RankedExpert ranked(std::uint32_t expert) const {
    if (!needs_probabilities()) return by_score(expert);
    const float probability = term(expert) / total;
    return {.key = bias != nullptr ? probability + bias[expert] : probability, .expert = expert};
  }
  LEASEHOLD_HD bool allows(std::uint32_t expert) const {
    return group_size == 0 || (allowed_groups >> expert / group_size & 1u) != 0;
  }
};

/// A group with the sum of its two best experts, in place of an expert with its key.
LEASEHOLD_HD inline RankedExpert ranked_group(const RoutedRow& row, std::uint32_t group) {
  const std::uint32_t first = group * row.group_size;
  RankedExpert best = row.ranked(first);
  if (row.group_size == 1) return {.key = best.key, .expert = group};
  RankedExpert second = row.ranked(first + 1);
  if (ranks_before(second, best)) {
    const RankedExpert swapped = best;
    best = second;
    second = swapped;
  }
  for (std::uint32_t i = 2; i < row.group_size; ++i) {
    const RankedExpert next = row.ranked(first + i);
    if (ranks_before(next, best)) {
      second = best;
      best = next;
    } else if (ranks_before(next, second)) {
      second = next;
    }
  }
  return {.key = best.key + second.key, .expert = group};
}

/// The weight of a chosen expert from its term and the sum of the chosen experts' terms.
LEASEHOLD_HD inline float expert_weight(const RoutedRow& row, float term, float chosen_sum,
                                        bool normalize, float scale) {
  const float least = kLeastProbabilitySum * row.total;
  const float divisor = !normalize ? row.total : chosen_sum < least ? least : chosen_sum;
  return term / divisor * scale;
}

/// Calls `take(k, i)` for the n_used highest-ranked of n candidates, in order. Each search finds
/// the best candidate that ranks after the previous one.
template <class RankOf, class Allows, class Take>
void each_of_best(std::uint32_t n, std::uint32_t n_used, RankOf&& rank_of, Allows&& allows,
                  Take&& take) {
  RankedExpert previous{};
  for (std::uint32_t k = 0; k < n_used; ++k) {
    RankedExpert best{.key = 0, .expert = n};
    for (std::uint32_t i = 0; i < n; ++i) {
      if (!allows(i)) continue;
      const RankedExpert candidate = rank_of(i);
      const bool is_left = k == 0 || ranks_before(previous, candidate);
      if (is_left && (best.expert == n || ranks_before(candidate, best))) best = candidate;
    }
    take(k, best.expert);
    previous = best;
  }
}

/// The bits of the n_used highest-ranked groups.
inline std::uint32_t best_groups(const RoutedRow& row, std::uint32_t n_groups,
                                 std::uint32_t n_used) {
  std::uint32_t groups = 0;
  each_of_best(
      n_groups, n_used, [&](std::uint32_t g) { return ranked_group(row, g); },
      [](std::uint32_t) { return true; },
      [&](std::uint32_t, std::uint32_t group) { groups |= std::uint32_t{1} << group; });
  return groups;
}

/// Adds `n` terms in lanes as ordered_sum does.
template <class Term>
float sum_of_terms(std::uint32_t n, Term&& term) {
  float lanes[kSumLanes] = {};
  for (std::uint32_t i = 0; i < n; ++i) lanes[i % kSumLanes] += term(i);
  return fold_lanes(lanes);
}

/// The vectors of ExpertRoutingArgs, opened; null if they are empty.
struct RoutingVectors {
  const float* bias = nullptr;    // [n_experts], selection_bias
  const float* scales = nullptr;  // [n_experts], expert_scales
};

/// Routes row `r` of a step. Sums add all experts by index, and the chosen ones by rank.
inline void select_experts(const ExpertRoutingArgs& args, const RoutingVectors& vectors,
                           std::size_t r) {
  const float* bias = vectors.bias;
  const bool has_groups = args.n_groups > 1;
  RoutedRow row{.scores = args.scores + r * args.n_experts,
                .bias = bias,
                .gating = args.gating,
                .group_size = has_groups ? args.n_experts / args.n_groups : 0};
  std::uint32_t* chosen = args.chosen + r * args.n_used;
  float* weights = args.weights + r * args.n_used;
  if (args.gating == ExpertGating::Softmax) {
    RankedExpert highest = row.by_score(0);
    for (std::uint32_t e = 1; e < args.n_experts; ++e)
      if (ranks_before(row.by_score(e), highest)) highest = row.by_score(e);
    row.highest_score = highest.key;
    if (row.needs_probabilities() || !args.normalize_expert_weights)
      row.total = sum_of_terms(args.n_experts, [&](std::uint32_t e) { return row.term(e); });
  }
  if (has_groups) row.allowed_groups = best_groups(row, args.n_groups, args.n_groups_used);
  each_of_best(
      args.n_experts, args.n_used, [&](std::uint32_t e) { return row.ranked(e); },
      [&](std::uint32_t e) { return row.allows(e); },
      [&](std::uint32_t k, std::uint32_t expert) { chosen[k] = expert; });
  const float chosen_sum =
      sum_of_terms(args.n_used, [&](std::uint32_t k) { return row.term(chosen[k]); });
  for (std::uint32_t k = 0; k < args.n_used; ++k)
    weights[k] = expert_weight(row, row.term(chosen[k]), chosen_sum, args.normalize_expert_weights,
                               args.scale);
  if (vectors.scales == nullptr) return;
  for (std::uint32_t k = 0; k < args.n_used; ++k) weights[k] *= vectors.scales[chosen[k]];
}

}  // namespace leasehold
