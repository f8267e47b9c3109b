#include "tools/checks/soak/counters.hpp"

namespace leasehold::soak {

std::uint64_t Tally::kills() const {
  std::uint64_t sum = 0;
  for (int i = 0; i < kDeedKindCount; ++i) {
    if (is_kill(static_cast<DeedKind>(i))) sum += deeds[static_cast<std::size_t>(i)];
  }
  return sum;
}

void Tally::add(const Tally& other) {
  for (std::size_t i = 0; i < deeds.size(); ++i) deeds[i] += other.deeds[i];
  for (const auto member :
       {&Tally::brokers, &Tally::workers, &Tally::tenants, &Tally::answered, &Tally::leases,
        &Tally::revoked_leases, &Tally::tokens, &Tally::extents_read}) {
    this->*member += other.*member;
  }
  for (const auto& [code, count] : other.gave_up) gave_up[code] += count;
}

}  // namespace leasehold::soak
