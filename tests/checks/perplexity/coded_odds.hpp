/// Log probabilities as codes of 16 bits, as llama.cpp's `llama-perplexity` writes them with
/// `--kl-divergence-base`. Pure.
///
/// A position is float scale, float lowest, uint16 codes: ln p = lowest + scale · code. Codes span
/// at most kCodedNats below the most probable token; less probable ones have code 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/result.hpp"

namespace leasehold {

inline constexpr double kCodedNats = 16;
inline constexpr double kHighestCode = 65'535;

/// The widest step between two codes, in nats.
inline constexpr double kCodeStep = kCodedNats / kHighestCode;

struct CodedOdds {
  float scale = 0;
  float lowest = 0;
  std::vector<std::uint16_t> codes;  // [n_vocab]
};

CodedOdds encode_odds(std::span<const double> log_p);  // [n_vocab]

/// Log probabilities, normalised: the codes of a position add up to nearly 1 only.
/// Errors: FileCorrupt for a scale or a lowest value that is not a number of the range above, and
/// for codes that do not add up to 1 within a twentieth.
Result<std::vector<double>> decode_odds(const CodedOdds& coded);

/// The same limit for a reference: no token is less probable than the codes can say. Normalised.
/// Without it, a reference would differ from its own codes by the probability that they add.
std::vector<double> clip_odds(std::span<const double> log_p);  // [n_vocab]

/// The mean divergence from which on the codes change it by at most a twentieth.
///
/// Rounding moves each ln q by d, at most half a step s. After normalising, the divergence of q
/// from p moves by sum((q - p) d) and at most s²/8 more (Hoeffding's lemma). The sum is at most
/// (s / 2) |q - p|, where |q - p| <= sqrt(2 KL) (Pinsker's inequality). (s / 2) sqrt(2 KL) is a
/// twentieth of KL at KL = 200 s². The mean over positions obeys the same bound (Jensen).
inline constexpr double kCodeFloorNats = 200 * kCodeStep * kCodeStep;

}  // namespace leasehold
