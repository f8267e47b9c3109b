#include "tests/checks/soak/counters.hpp"

#include <algorithm>
#include <set>

namespace leasehold::soak {
namespace {

bool is_disturbance(const demo::TenantEvent& reported) {
  if (reported.event == "rebound") return reported.why != "preemptive";
  return reported.event == "revoked" || reported.event == "retry";
}

}  // namespace

std::uint64_t disturbed_texts(const std::vector<TenantInstance>& tenants) {
  std::uint64_t count = 0;
  std::set<std::string> killed;
  for (const TenantInstance& tenant : tenants) {
    const bool is_resumable = !tenant.request_id.empty();
    const bool was_interrupted = std::ranges::any_of(tenant.record.reported, is_disturbance);
    const bool was_resumed = is_resumable && killed.contains(tenant.request_id);
    if (tenant.record.completed && (was_interrupted || was_resumed)) ++count;
    if (tenant.was_killed && is_resumable) killed.insert(tenant.request_id);
  }
  return count;
}

std::uint64_t text_ends(const std::vector<TenantInstance>& tenants) {
  std::uint64_t count = 0;
  for (const TenantInstance& tenant : tenants)
    count += static_cast<std::uint64_t>(std::ranges::count_if(tenant.record.reported, is_text_end));
  return count;
}

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
