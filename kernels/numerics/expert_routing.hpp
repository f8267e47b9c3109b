/// The choice of the experts that process a row, and their weights: a softmax of the row's router
/// scores.
///
/// Source: Shazeer et al. 2017 (top-k gating); Jiang et al. 2024 (Mixtral): the weights of the
/// chosen experts are their shares among the chosen, which is the softmax over these alone. Models
/// of the Qwen2 family use their shares among all experts.
///
/// The choice compares scores and breaks ties by the lower index, so it is the same on every path.
/// A NaN score ranks below every other score; even then n_used different experts are chosen.
/// C++20-clean.
#pragma once

#include <cstdint>

#include "kernels/numerics/exp.hpp"
#include "kernels/numerics/host_device.hpp"
#include "kernels/numerics/ordered_sum.hpp"
#include "kernels/op_args.hpp"

namespace leasehold {

/// Whether expert `a` ranks before expert `b` for a row.
LEASEHOLD_HD inline bool ranks_before(const float* scores, std::uint32_t a, std::uint32_t b) {
  const bool a_is_number = scores[a] == scores[a];
  const bool b_is_number = scores[b] == scores[b];
  if (!a_is_number || !b_is_number) return a_is_number == b_is_number ? a < b : a_is_number;
  return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
}

/// Writes the n_used highest-ranked experts in order. Each search finds the best expert that ranks
/// after the previous choice.
inline void select_top_k(const float* scores, std::uint32_t n_experts, std::uint32_t n_used,
                         std::uint32_t* chosen) {
  for (std::uint32_t k = 0; k < n_used; ++k) {
    std::uint32_t best = n_experts;
    for (std::uint32_t e = 0; e < n_experts; ++e) {
      const bool is_left = k == 0 || ranks_before(scores, chosen[k - 1], e);
      if (is_left && (best == n_experts || ranks_before(scores, e, best))) best = e;
    }
    chosen[k] = best;
  }
}

/// Routes row `r` of a step. Every exponent is relative to the highest score, so nothing overflows.
/// The sum adds its terms in lanes as ordered_sum does: over all experts by index, or over the
/// chosen ones by rank.
inline void select_experts(const ExpertRoutingArgs& args, std::size_t r) {
  const float* scores = args.scores + r * args.n_experts;
  std::uint32_t* chosen = args.chosen + r * args.n_used;
  float* weights = args.weights + r * args.n_used;
  select_top_k(scores, args.n_experts, args.n_used, chosen);
  const float max_score = scores[chosen[0]];
  const std::uint32_t n_terms = args.normalize_expert_weights ? args.n_used : args.n_experts;
  float lanes[kSumLanes] = {};
  for (std::uint32_t i = 0; i < n_terms; ++i)
    lanes[i % kSumLanes] +=
        exp_f32(scores[args.normalize_expert_weights ? chosen[i] : i] - max_score);
  const float sum = fold_lanes(lanes);
  for (std::uint32_t k = 0; k < args.n_used; ++k)
    weights[k] = exp_f32(scores[chosen[k]] - max_score) / sum;
}

}  // namespace leasehold
