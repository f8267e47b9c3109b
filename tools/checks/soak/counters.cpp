#include "tools/checks/soak/counters.hpp"

namespace leasehold::soak {

std::uint64_t Counters::kills() const {
  std::uint64_t sum = 0;
  for (int i = 0; i < kScriptActionKindCount; ++i) {
    if (is_kill(static_cast<ScriptActionKind>(i))) sum += actions[static_cast<std::size_t>(i)];
  }
  return sum;
}

void Counters::add(const Counters& other) {
  for (std::size_t i = 0; i < actions.size(); ++i) actions[i] += other.actions[i];
  for (const auto member :
       {&Counters::brokers, &Counters::workers, &Counters::tenants, &Counters::answered,
        &Counters::leases, &Counters::revoked_leases, &Counters::tokens, &Counters::extents_read}) {
    this->*member += other.*member;
  }
  for (const auto& [code, count] : other.gave_up) gave_up[code] += count;
}

}  // namespace leasehold::soak
