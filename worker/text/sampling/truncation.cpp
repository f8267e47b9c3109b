#include "worker/text/sampling/truncation.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "worker/text/sampling/row_scans.hpp"
#include "worker/text/sampling/token_weights.hpp"

namespace leasehold {
namespace {

// Sums of weight times ln p need more than 64 bits.
__extension__ using Wide = __int128;

using Ranked = std::vector<RankedToken>;

bool is_before(const RankedToken& a, const RankedToken& b) {
  return a.key != b.key ? a.key < b.key : a.token < b.token;
}

std::uint64_t mass_of(std::span<const RankedToken> ranked) {
  std::uint64_t mass = 0;
  for (const RankedToken& token : ranked) mass += token.weight;
  return mass;
}

/// `fraction` of `mass`, at least 1. `mass` is below 2^53, so the product is rounded only once.
std::uint64_t mass_fraction(std::uint64_t mass, float fraction) {
  const double part = std::ceil(static_cast<double>(mass) * static_cast<double>(fraction));
  return std::max(std::uint64_t{1}, static_cast<std::uint64_t>(part));
}

/// A threshold such that tokens at or above it weigh at least `enough` together; lighter tokens
/// cannot matter. Tries steps of factor 16, which is cheaper than a histogram.
template <class Enough>
std::uint32_t threshold_for(std::span<const std::uint32_t> weights, Enough enough) {
  for (std::uint32_t threshold = 1u << 28; threshold > 1; threshold >>= 4)
    if (enough(row_scans().at_least(weights, threshold))) return threshold;
  return 1;
}

/// Collects the tokens that weigh at least `threshold`, in ascending order of ids. Their keys put
/// the most likely token first.
void collect_candidates(const TokenScores& scores, std::uint32_t threshold, Ranked& ranked) {
  ranked.clear();
  for (std::size_t from = 0; from < scores.weights.size(); from += 64) {
    std::uint64_t mask = row_scans().mask_at_least(scores.weights, threshold, from);
    for (; mask != 0; mask &= mask - 1) {
      const std::size_t i = from + static_cast<std::size_t>(std::countr_zero(mask));
      ranked.push_back(
          {-static_cast<double>(scores.logits[i]), static_cast<TokenId>(i), scores.weights[i]});
    }
  }
}

/// Keeps the shortest prefix in key order that weighs at least `enough`, or everything. Partitions
/// around a median and continues in one half: linear time, no sort.
void keep_mass(Ranked& ranked, std::uint64_t enough) {
  std::size_t kept = 0;  // number of tokens certain to be kept
  std::size_t end = ranked.size();
  const auto at = [&](std::size_t i) { return ranked.begin() + static_cast<std::ptrdiff_t>(i); };
  while (end - kept > 1) {
    const std::size_t middle = kept + (end - kept) / 2;
    std::nth_element(at(kept), at(middle), at(end), is_before);
    const std::uint64_t left = mass_of(std::span(ranked).subspan(kept, middle - kept));
    if (left >= enough) {
      end = middle;
    } else {
      enough -= left;
      kept = middle;
    }
  }
  ranked.resize(end);
}

void keep_top_k(Ranked& ranked, std::uint32_t k) {
  if (ranked.size() <= k) return;
  const auto end = ranked.begin() + k;
  std::nth_element(ranked.begin(), end, ranked.end(), is_before);
  ranked.erase(end, ranked.end());
}

/// ln p minus a constant, in units of 2^-32, so that sums are exact.
std::int64_t log_probability(const TokenScores& scores, TokenId token, float temperature) {
  const float below = scores.logits[static_cast<std::size_t>(token)] - scores.highest;
  return static_cast<std::int64_t>(static_cast<double>(below / temperature) * 0x1p32);
}

void keep_typical(const TokenScores& scores, const SamplingParams& params, Ranked& ranked) {
  Wide sum = 0;
  for (const RankedToken& token : ranked)
    sum += Wide{log_probability(scores, token.token, params.temperature)} * token.weight;
  const std::uint64_t mass = mass_of(ranked);
  const auto mean = static_cast<std::int64_t>(sum / static_cast<std::int64_t>(mass));
  const auto set_key = [&](auto key_of) {
    for (RankedToken& token : ranked) token.key = key_of(token.token);
  };
  set_key([&](TokenId token) {
    return std::abs(static_cast<double>(log_probability(scores, token, params.temperature) - mean));
  });
  keep_mass(ranked, mass_fraction(mass, params.typical_p));
  set_key([&](TokenId token) {
    return -static_cast<double>(scores.logits[static_cast<std::size_t>(token)]);
  });
}

void keep_min_p(Ranked& ranked, float min_p) {
  const auto max_weight = std::ranges::max(ranked, {}, &RankedToken::weight).weight;
  const std::uint64_t least = mass_fraction(max_weight, min_p);
  std::erase_if(ranked, [least](const RankedToken& token) { return token.weight < least; });
}

/// A threshold such that lighter tokens cannot pass the first active filter. `mass` is the weight
/// of all tokens if that filter is top-p.
std::uint32_t threshold_of_first(std::span<const std::uint32_t> weights,
                                 const SamplingParams& params, std::uint64_t mass) {
  if (params.top_k > 0)
    return threshold_for(weights,
                         [&](const CountAndMass& found) { return found.tokens >= params.top_k; });
  if (params.typical_p < 1.0f) return 1;
  if (params.top_p == 1.0f) {
    const auto top = static_cast<std::uint64_t>(kTopWeight);
    return static_cast<std::uint32_t>(mass_fraction(top, params.min_p));
  }
  const std::uint64_t needed = mass_fraction(mass, params.top_p);
  return threshold_for(weights, [&](const CountAndMass& found) { return found.mass >= needed; });
}

}  // namespace

bool truncates(const SamplingParams& params) {
  return params.top_k > 0 || params.typical_p < 1.0f || params.top_p < 1.0f || params.min_p > 0.0f;
}

std::uint64_t truncate_tokens(const TokenScores& scores, const SamplingParams& params,
                              std::vector<RankedToken>& ranked, TokenMask& kept) {
  const bool typical = params.typical_p < 1.0f;
  const bool top_p_is_first = params.top_k == 0 && !typical && params.top_p < 1.0f;
  const std::uint64_t whole_mass =
      top_p_is_first ? row_scans().at_least(scores.weights, 1).mass : 0;
  collect_candidates(scores, threshold_of_first(scores.weights, params, whole_mass), ranked);
  if (params.top_k > 0) keep_top_k(ranked, params.top_k);
  if (typical) keep_typical(scores, params, ranked);
  if (params.top_p < 1.0f) {
    const std::uint64_t mass = top_p_is_first ? whole_mass : mass_of(ranked);
    keep_mass(ranked, mass_fraction(mass, params.top_p));
  }
  if (params.min_p > 0.0f) keep_min_p(ranked, params.min_p);
  for (const RankedToken& token : ranked) kept.add(token.token);
  return mass_of(ranked);
}

}  // namespace leasehold
