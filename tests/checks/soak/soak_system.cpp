#include "tests/checks/soak/soak_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace leasehold::soak {
namespace {

using runner::Starts;
using runner::Tenant;
using runner::TenantSpec;
using runner::Worker;

constexpr std::int64_t kTtl_ms = 5000;
constexpr const char* kFenceTimeout_ms = "1500";
constexpr const char* kReclaimGrace_ms = "50";  // less than a text takes
/// Tokens of the scavenger before the guaranteed tenant requests its memory.
constexpr std::size_t kTokensBeforeReclaim = 4;
constexpr std::uint64_t kAmpleBytes = 256ull << 20;
constexpr const char* kSwapCapacity = "16MiB";
constexpr std::uint32_t kManyBlocks = 1000;
constexpr std::uint64_t kPollsPerUse = 20;  // a worker reports what it served once a second

std::uint64_t capacity_bytes(const Workload& workload) {
  if (!workload.extent) return kAmpleBytes;
  return 2 * workload.large_lease_extents * workload.extent->bytes;
}

std::int64_t duration_ms(const runner::TenantRecord& record) {
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

runner::SystemConfig SoakSystem::config(std::filesystem::path directory) {
  return {.bin_dir = settings_.bin_dir,
          .directory = std::move(directory),
          .broker_arguments = {"--capacity", std::to_string(capacity_bytes(workload_)),
                               "--swap-capacity", kSwapCapacity, "--allow-memory-check",
                               "--fence-timeout-ms", kFenceTimeout_ms, "--reclaim-grace-ms",
                               kReclaimGrace_ms},
          .restarts_broker = true,
          .restarts_workers = true,
          .has_store = settings_.store,
          .logs_events = true,
          .samples_status = true,
          .on_connected = [this](BrokerView& broker) { return admit(broker); },
          .may_start = [this](const Tenant& tenant) { return may_start(tenant); },
          .on_poll = [this](Starts starts) -> Result<void> {
            on_poll(starts == Starts::Tenants);
            return {};
          }};
}

SoakSystem::SoakSystem(const Settings& settings, const Workload& workload,
                       const runner::Poller& poller, std::filesystem::path directory)
    : settings_(settings),
      workload_(workload),
      system_(config(std::move(directory)), poller),
      tight_tenant_(system_.programs().broker_socket(), settings.max_tokens, workload.tight_texts),
      publisher_(system_.programs().broker_socket(), kPublishedText) {
  record().canaries.emplace();
  record().used_blocks.emplace();
  for (std::uint32_t i = 0; i < settings.workers; ++i)
    system_.add_worker(
        fmt::format("w{}", i), settings.model_path,
        {"--threads", "1", "--slow-motion-us", std::to_string(settings.slow_motion_us)});
  for (TenantSpec spec : workload.tenants) {
    if (spec.tier != wire::Tier::Standard) spec.blocks = workload.large_lease_blocks();
    system_.add_tenant(std::move(spec));
  }
  record().tiers = {.guaranteed = tenant_of(wire::Tier::Guaranteed).spec.name,
                    .scavenger = tenant_of(wire::Tier::Scavenger).spec.name};
}

Result<void> SoakSystem::admit(BrokerView& broker) {
  is_reserved_ = false;
  wire::TenantAdmit tight = policy_of({.name = TightTenant::kName, .prompt = {}});
  if (workload_.extent) tight.max_blocks = TightTenant::kBlocks;
  TRY(broker.command(tight));
  for (const TenantSpec& spec : workload_.tenants) TRY(broker.command(policy_of(spec)));
  return {};
}

wire::TenantAdmit SoakSystem::policy_of(const TenantSpec& spec) const {
  return {.tenant = {spec.name},
          .max_concurrent = 4,
          .max_blocks = std::max(kManyBlocks, 2 * workload_.large_lease_blocks()),
          .tier = spec.tier,
          .ttl_ms = kTtl_ms,
          .max_lifetime_ms = spec.max_lifetime_ms};
}

Tenant& SoakSystem::tenant_of(wire::Tier tier) {
  return *std::ranges::find(system_.tenants(), tier,
                            [](const Tenant& tenant) { return tenant.spec.tier; });
}

/// The guaranteed tenant starts once beside each process of the scavenger, in the middle of its
/// text. Otherwise it would reclaim the memory whenever the scavenger gets it.
bool SoakSystem::may_start(const Tenant& tenant) {
  if (tenant.spec.tier != wire::Tier::Guaranteed) return true;
  const Tenant& scavenger = tenant_of(wire::Tier::Scavenger);
  if (!is_reserved_ || scavenger.starts == scavenger_process_) return false;
  const bool is_mid_text =
      scavenger.process.has_process() && scavenger.record.tokens.size() >= kTokensBeforeReclaim;
  if (is_mid_text) scavenger_process_ = scavenger.starts;
  return is_mid_text;
}

void SoakSystem::on_poll(bool starts) {
  reserve_memory();
  tight_tenant_.poll(starts && system_.any_worker_ready());
  for (runner::Text& text : tight_tenant_.take_texts())
    record().swapped_texts.push_back(std::move(text));
  record().swaps = tight_tenant_.swaps();
  std::vector<std::string> workers;
  for (const Worker& worker : system_.workers()) {
    // The undisturbed texts are computed without the published text.
    if (starts && workload_.extent && worker.ready) workers.push_back(worker.name);
  }
  publisher_.poll(workers);
  record().publications = publisher_.publications();
  if (polls_++ % kPollsPerUse == 0) sample_used_blocks();
}

/// Reserves the guaranteed tenant's memory, once a worker has reported the size of a block.
void SoakSystem::reserve_memory() {
  BrokerView* broker = system_.view();
  if (is_reserved_ || broker == nullptr || !system_.any_worker_ready()) return;
  wire::TenantAdmit policy = policy_of(tenant_of(wire::Tier::Guaranteed).spec);
  policy.reserved_blocks = workload_.large_lease_blocks();
  is_reserved_ = broker->command(policy).has_value();
}

/// A broker counts from its start, so a count that is smaller than before is the whole count of a
/// new broker.
void SoakSystem::sample_used_blocks() {
  BrokerView* broker = system_.view();
  const auto tenants = broker ? broker->tenants() : fail(Errc::BrokerLost, "");
  if (!tenants) return;
  runner::UsedBlocks now;
  for (const wire::TenantView& tenant : *tenants) {
    now.published += tenant.served.shared_hit_blocks;
    now.cross_tenant += tenant.served.cross_tenant_hits;
  }
  const auto add = [](std::uint64_t& sum, std::uint64_t& before, std::uint64_t count) {
    sum += count - (count < before ? 0 : before);
    before = count;
  };
  add(record().used_blocks->published, used_of_broker_.published, now.published);
  add(record().used_blocks->cross_tenant, used_of_broker_.cross_tenant, now.cross_tenant);
}

Result<void> run_undisturbed(const Settings& settings, Workload& workload,
                             const runner::Poller& poller, const std::filesystem::path& directory) {
  SoakSystem soak(settings, workload, poller, directory);
  const runner::Record& record = soak.record();
  std::map<std::string, std::vector<std::int32_t>> tight_texts;
  std::optional<ExtentShape> extent;
  TRY(soak.system().poll_until(
      [&] {
        if (!extent) extent = find_extent_shape(soak.system().view());
        for (const runner::Text& text : record.swapped_texts)
          if (text.record.completed) tight_texts[text.tenant] = text.record.tokens;
        const bool all_answered =
            std::ranges::all_of(workload.tenants, [&](const runner::TenantSpec& spec) {
              return runner::whole_texts(record, spec.name) > 0;
            });
        return runner::missing_unless(
            all_answered && tight_texts.size() == TightTenant::kRequests && extent,
            "the undisturbed run does not end");
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
