/// Probabilities from logits, in doubles, for measurements; and their codes in 16 bits, in the
/// format that llama.cpp's `llama-perplexity` writes with `--kl-divergence-base`. Pure.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/result.hpp"

namespace leasehold {

/// Returns ln softmax(logits).
std::vector<double> log_probabilities(std::span<const float> logits);  // [n_vocab]

/// Kullback-Leibler divergence of `model` from `reference` in nats. Both are log probabilities.
double divergence(std::span<const double> reference, std::span<const double> model);

/// Sums over the scored tokens of a text.
struct TextScore {
  std::size_t scored = 0;     ///< Tokens predicted.
  double surprise_nats = 0;   ///< Sum of -ln p(token).
  double divergence_sum = 0;  ///< Over all scored positions; 0 without a reference.
  double worst_divergence = 0;

  double perplexity() const { return std::exp(surprise_nats / count()); }
  double mean_divergence() const { return divergence_sum / count(); }

 private:
  double count() const { return scored == 0 ? 1.0 : static_cast<double>(scored); }
};

inline constexpr double kCodedNats = 16;
inline constexpr double kHighestCode = 65'535;

/// The widest step between two codes, in nats.
inline constexpr double kCodeStep = kCodedNats / kHighestCode;

/// The codes of one position, which consists of float scale, float lowest and uint16 codes:
/// ln p = lowest + scale · code. Codes span at most kCodedNats below the most probable token; less
/// probable tokens have code 0.
struct CodedOdds {
  float scale = 0;
  float lowest = 0;
  std::vector<std::uint16_t> codes;  // [n_vocab]
};

CodedOdds encode_odds(std::span<const double> log_p);  // [n_vocab]

/// Decodes log probabilities and normalises them, because the coded probabilities of a position add
/// up to only nearly 1.
/// Errors: FileCorrupt for a scale or a lowest value outside the range above, and for probabilities
/// that do not add up to 1 within a twentieth.
Result<std::vector<double>> decode_odds(const CodedOdds& coded);

/// Applies the limit of the codes to a reference: raises tokens that are less probable than codes
/// can express, then normalises. Otherwise a reference would diverge from its own codes by the
/// probability that the codes add.
std::vector<double> clip_odds(std::span<const double> log_p);  // [n_vocab]

/// The codes change a mean divergence above this floor by at most a twentieth.
///
/// Rounding moves each ln q by d, at most half a step s. After normalising, the divergence of q
/// from p moves by sum((q - p) d) and at most s²/8 more (Hoeffding's lemma). The sum is at most
/// (s / 2) |q - p|, where |q - p| <= sqrt(2 KL) (Pinsker's inequality). (s / 2) sqrt(2 KL) is a
/// twentieth of KL at KL = 200 s². The mean over positions obeys the same bound (Jensen).
inline constexpr double kCodeFloorNats = 200 * kCodeStep * kCodeStep;

}  // namespace leasehold
