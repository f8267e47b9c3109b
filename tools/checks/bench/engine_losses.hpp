/// Time from the revocation of a worker's engine lease to the next token of its texts: on weights
/// that the broker retained, and on weights that the worker reads again from a new file.
#pragma once

#include <vector>

#include "tools/checks/bench/deaths_of_text.hpp"

namespace leasehold::bench {

/// In ms, of each text in each round.
struct EngineLosses {
  std::vector<double> retained_ms, reloaded_ms;
};

/// Two texts run. `config.texts` is not used. Errors: SystemError if the weights were read again
/// although they were retained, or were not read although the file is new; if the model cannot be
/// copied; those of RebindingText and System.
Result<EngineLosses> measure_engine_losses(const DeathsConfig& config);

}  // namespace leasehold::bench
