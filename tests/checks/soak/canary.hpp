/// A canary is a run of tokens in the prompt of exactly one tenant.
///
/// Sequence records keep prompts in the tenant's leased memory, so a canary in the memory or text
/// of another tenant shows a leak.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/checks/local_system/broker_view.hpp"
#include "tests/checks/runner/record.hpp"

namespace leasehold::soak {

struct Canary {
  std::string tenant;
  std::vector<std::int32_t> tokens;
};

/// Returns random words for the start of a prompt, determined by seed and number.
std::string canary_words(std::uint64_t seed, std::uint64_t number);

/// True when the memory contains the tokens of the canary in order, as a sequence record does.
bool holds(std::span<const std::byte> memory, const Canary& canary);

/// Searches all memory that tenants lease now; skips extents that are freed meanwhile.
/// Errors: those of BrokerView, SystemError.
Result<void> find_canaries(BrokerView& broker, std::span<const Canary> canaries,
                           runner::CanaryReport& report);

/// Searches the tokens that a tenant received.
void find_canaries(const std::string& tenant, std::span<const std::int32_t> stream,
                   std::span<const Canary> canaries, runner::CanaryReport& report);

}  // namespace leasehold::soak
