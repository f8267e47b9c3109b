#include <algorithm>
#include <map>
#include <utility>

#include "tests/checks/soak/round.hpp"
#include "tests/checks/soak/supervisor.hpp"

namespace leasehold::soak {
namespace {

std::int64_t duration_ms(const demo::TenantRecord& record) {
  return (record.token_times.back() - record.token_times.front()) / std::chrono::milliseconds(1);
}

/// Reads the shape of an extent from a tenant's lease.
std::optional<ExtentShape> find_extent_shape(BrokerView* broker) {
  const auto leases = broker ? broker->leases() : fail(Errc::BrokerLost, "");
  if (!leases) return std::nullopt;
  for (const wire::LeaseView& lease : *leases) {
    if (lease.scope == wire::LeaseScope::Tenant && lease.extents > 0 && lease.blocks > 0)
      return ExtentShape{lease.size_bytes / lease.extents, lease.blocks / lease.extents};
  }
  return std::nullopt;
}

}  // namespace

Result<void> run_undisturbed(const Settings& settings, Workload& workload,
                             const demo::Poller& poller, const std::filesystem::path& directory) {
  Supervisor supervisor(settings, workload, poller, directory);
  const SystemClock clock;
  const TimePoint deadline = clock.now() + kSettleTimeout;
  const auto text_of = [&supervisor](const TenantSpec& spec) -> const TenantInstance* {
    for (const TenantInstance& instance : supervisor.history().tenants) {
      if (instance.tenant == spec.name && instance.record.completed) return &instance;
    }
    return nullptr;
  };
  const auto all_answered = [&] {
    return std::ranges::all_of(workload.tenants,
                               [&](const TenantSpec& spec) { return text_of(spec); });
  };
  std::map<std::uint32_t, std::vector<std::int32_t>> tight_texts;
  std::optional<ExtentShape> extent;
  while (!all_answered() || tight_texts.size() < TightTenant::kRequests || !extent) {
    TRY(supervisor.poll(true));
    if (!extent) extent = find_extent_shape(supervisor.view());
    for (const TightText& text : supervisor.history().tight_texts)
      if (text.is_complete) tight_texts[text.number] = text.tokens;
    if (clock.now() > deadline) return fail(Errc::TimedOut, "the undisturbed run does not end");
  }
  if (supervisor.history().swaps.value_or(0) > 0)
    return fail(Errc::SystemError, "the undisturbed run swapped requests; it has too few blocks");
  workload.extent = extent;
  for (auto& [number, text] : tight_texts) workload.tight_texts.push_back(std::move(text));
  for (TenantSpec& spec : workload.tenants) {
    const demo::TenantRecord& record = text_of(spec)->record;
    spec.undisturbed = record.tokens;
    if (spec.max_lifetime_ms)
      spec.max_lifetime_ms = std::max(*spec.max_lifetime_ms, duration_ms(record));
  }
  return {};
}

}  // namespace leasehold::soak
