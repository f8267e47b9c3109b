/// A canary is a row of tokens only one tenant's prompt has. Sequence records keep prompts in the
/// tenant's leased memory, so whoever reads another's memory, or text, would meet it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/checks/soak/history.hpp"
#include "tools/client/broker_view.hpp"

namespace leasehold::soak {

struct Canary {
  std::string tenant;
  std::vector<std::int32_t> tokens;
};

/// Letters no text is likely to have, named by seed and number: what the prompt begins with.
std::string canary_words(std::uint64_t seed, std::uint64_t number);

/// Its tokens lie there one after another, as a sequence record keeps them.
bool holds(std::span<const std::byte> memory, const Canary& canary);
bool holds(std::span<const std::int32_t> stream, const Canary& canary);

/// Reads all memory that tenants lease now. What changes hands meanwhile is left out.
/// Errors: those of the broker's calls; SystemError.
Result<void> find_canaries(client::BrokerView& broker, std::span<const Canary> canaries,
                           CanaryReport& report);

/// The same for what a tenant was reported.
void find_canaries(const std::string& tenant, std::span<const std::int32_t> stream,
                   std::span<const Canary> canaries, CanaryReport& report);

}  // namespace leasehold::soak
