/// Judges and prints what peer_divergence.hpp measured. Pure.
#pragma once

#include <string>

#include "tests/checks/perplexity/peer_divergence.hpp"

namespace leasehold {

/// Our mean divergence may be at most this many times the peer's on one file, and at most the
/// peer's over all files. If the peer's value is below kCodeFloorNats, the floor replaces it,
/// because the error of the codes would then determine the ratio.
inline constexpr double kMostTimesPeer = 1.1;

/// True if our divergence on the file is within the limit; false for a file that could not be
/// compared.
bool is_within(const FileDivergence& file);

/// Means over the compared files, each with the same weight.
struct MeanDivergence {
  std::size_t files = 0;
  double peer = 0;
  double ours = 0;
};
MeanDivergence mean_of(const PeerDivergence& measured);

/// True if every file, and the mean over all files, is within its limit.
bool passes(const PeerDivergence& measured);

/// Returns a table with one line per file and one for all files, and a description of the
/// comparison.
std::string divergence_text(const PeerDivergenceConfig& config, const PeerDivergence& measured);

}  // namespace leasehold
