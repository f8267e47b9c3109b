/// Judges and prints what peer_divergence.hpp measured. Pure.
#pragma once

#include <string>

#include "tests/checks/perplexity/peer_divergence.hpp"

namespace leasehold {

/// Our mean divergence may be this many times the peer's on one file, and at most the peer's over
/// all files. Below kCodeFloorNats, the codes decide about the ratio, so there the floor replaces
/// the peer's value.
inline constexpr double kMostTimesPeer = 1.1;

/// False for a file that could not be compared.
bool is_within(const FileDivergence& file);

/// Means over the files that were compared, each with the same weight.
struct MeanDivergence {
  std::size_t files = 0;
  double peer = 0;
  double ours = 0;
};
MeanDivergence mean_of(const PeerDivergence& measured);

/// Every file is within, and the means over all are.
bool passes(const PeerDivergence& measured);

/// A table with one line per file and one for all, and what was compared.
std::string divergence_text(const PeerDivergenceConfig& config, const PeerDivergence& measured);

}  // namespace leasehold
