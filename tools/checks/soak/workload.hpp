/// Who takes part: tenants, each with a prompt that begins with a canary of its own.
#pragma once

#include <vector>

#include "tools/checks/soak/canary.hpp"
#include "tools/checks/soak/settings.hpp"

namespace leasehold::soak {

struct Part {
  std::string name;
  std::string prompt;
  std::uint64_t seed = 0;                 ///< Of its sampling.
  std::vector<std::int32_t> undisturbed;  ///< Filled in by a calm run.
};

struct Cast {
  std::vector<Part> parts;
  std::vector<Canary> canaries;  ///< Of the part with the same index.
};

/// Errors: those of opening the model and reading its vocabulary.
Result<Cast> make_cast(const Settings& settings);

}  // namespace leasehold::soak
