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
  for (const Figure& figure : kFigures) this->*figure.value += other.*figure.value;
  for (const auto& [code, count] : other.gave_up) gave_up[code] += count;
}

}  // namespace leasehold::soak
