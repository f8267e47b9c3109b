#include "tests/checks/perplexity/token_odds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace leasehold {
namespace {

constexpr double kMostExcess = 0.05;
constexpr double kRoundingShare = 1e-3;  // of the scale, because it is a float

/// Subtracts the logarithm of the sum of the probabilities, and returns the sum.
double normalise(std::vector<double>& log_p) {
  double sum = 0;
  for (const double one : log_p) sum += std::exp(one);
  const double log_sum = std::log(sum);
  for (double& one : log_p) one -= log_sum;
  return sum;
}

}  // namespace

CodedOdds encode_odds(std::span<const double> log_p) {
  const auto [least, most] = std::ranges::minmax(log_p);
  const double lowest = std::max(least, most - kCodedNats);
  CodedOdds coded{.scale = static_cast<float>((most - lowest) / kHighestCode),
                  .lowest = static_cast<float>(lowest),
                  .codes = {}};
  coded.codes.reserve(log_p.size());
  for (const double one : log_p) {
    const double code = coded.scale > 0 ? std::round((one - lowest) / double{coded.scale}) : 0;
    coded.codes.push_back(static_cast<std::uint16_t>(std::clamp(code, 0.0, kHighestCode)));
  }
  return coded;
}

Result<std::vector<double>> decode_odds(const CodedOdds& coded) {
  const double scale = coded.scale;
  const double lowest = coded.lowest;
  const bool is_usable = scale >= 0 && scale <= kCodeStep * (1 + kRoundingShare) && lowest <= 0 &&
                         std::isfinite(lowest);
  if (!is_usable || coded.codes.empty())
    return fail(Errc::FileCorrupt, fmt::format("a position has the scale {} and the lowest value "
                                               "{}; use a llama.cpp that writes 16-bit codes",
                                               scale, lowest));
  std::vector<double> log_p;
  log_p.reserve(coded.codes.size());
  for (const std::uint16_t code : coded.codes) log_p.push_back(lowest + scale * code);
  const double sum = normalise(log_p);
  if (std::abs(sum - 1) <= kMostExcess) return log_p;
  return fail(Errc::FileCorrupt, fmt::format("the probabilities of a position add up to {}; use a "
                                             "llama.cpp that writes 16-bit codes",
                                             sum));
}

std::vector<double> clip_odds(std::span<const double> log_p) {
  const double lowest = std::ranges::max(log_p) - kCodedNats;
  std::vector<double> clipped(log_p.begin(), log_p.end());
  for (double& one : clipped) one = std::max(one, lowest);
  normalise(clipped);
  return clipped;
}

std::vector<double> log_probabilities(std::span<const float> logits) {
  const double highest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - highest);
  const double log_sum = highest + std::log(sum);
  std::vector<double> log_p(logits.size());
  std::ranges::transform(logits, log_p.begin(), [&](float logit) { return logit - log_sum; });
  return log_p;
}

double divergence(std::span<const double> reference, std::span<const double> model) {
  double sum = 0;
  for (std::size_t i = 0; i < reference.size(); ++i)
    sum += std::exp(reference[i]) * (reference[i] - model[i]);
  return sum;
}

}  // namespace leasehold
