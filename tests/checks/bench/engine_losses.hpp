/// Time from the revocation of a worker's engine lease to the next token of its texts, either on
/// weights that the broker retained or on weights that the worker reads again from a new file.
#pragma once

#include <vector>

#include "tests/checks/bench/deaths_of_text.hpp"

namespace leasehold::bench {

/// In ms, one value per text and round.
struct EngineLosses {
  std::vector<double> retained_ms, reloaded_ms;
};

/// Runs two texts; `config.texts` is not used. Errors: SystemError if the weights were read again
/// although they were retained, if they were not read although the file is new, or if the model
/// cannot be copied; those of RebindingText and System.
Result<EngineLosses> measure_engine_losses(const DeathsConfig& config);

}  // namespace leasehold::bench
