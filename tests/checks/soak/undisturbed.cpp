#include <algorithm>
#include <map>
#include <utility>

#include "tests/checks/soak/round.hpp"
#include "tests/checks/soak/soak_system.hpp"

namespace leasehold::soak {
namespace {

std::int64_t duration_ms(const runner::TenantRecord& record) {
  return (record.token_times.back() - record.token_times.front()) / std::chrono::milliseconds(1);
}

/// Reads the shape of an extent from a tenant's lease.
std::optional<ExtentShape> find_extent_shape(client::BrokerView* broker) {
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
                             const runner::Poller& poller, const std::filesystem::path& directory) {
  SoakSystem soak(settings, workload, poller, directory);
  const runner::Record& record = soak.record();
  std::map<std::string, std::vector<std::int32_t>> tight_texts;
  std::optional<ExtentShape> extent;
  TRY(soak.system().poll_until(
      [&]() -> std::optional<std::string> {
        if (!extent) extent = find_extent_shape(soak.system().view());
        for (const runner::Text& text : record.swapped_texts)
          if (text.record.completed) tight_texts[text.tenant] = text.record.tokens;
        const bool all_answered =
            std::ranges::all_of(workload.tenants, [&](const runner::TenantSpec& spec) {
              return runner::whole_texts(record, spec.name) > 0;
            });
        if (all_answered && tight_texts.size() == TightTenant::kRequests && extent)
          return std::nullopt;
        return "the undisturbed run does not end";
      },
      kSettleTimeout, runner::Starts::Tenants));
  if (record.swaps.value_or(0) > 0)
    return fail(Errc::SystemError, "the undisturbed run swapped requests; it has too few blocks");
  workload.extent = extent;
  for (auto& [name, text] : tight_texts) workload.tight_texts.push_back(std::move(text));
  for (runner::TenantSpec& spec : workload.tenants) {
    const auto text = std::ranges::find_if(record.texts, [&](const runner::Text& each) {
      return each.tenant == spec.name && each.record.completed;
    });
    spec.undisturbed = text->record.tokens;
    if (spec.max_lifetime_ms)
      spec.max_lifetime_ms = std::max(*spec.max_lifetime_ms, duration_ms(text->record));
  }
  return {};
}

}  // namespace leasehold::soak
