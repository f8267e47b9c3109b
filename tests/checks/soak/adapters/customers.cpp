#include "tests/checks/soak/adapters/customers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/model/config.hpp"
#include "tools/make_model/adapter.hpp"

namespace leasehold::soak {
namespace {

constexpr std::uint32_t kCustomers = 40;
/// Texts and adapters that the memory suffices for.
constexpr std::uint32_t kRoomFor = 30;
constexpr std::uint32_t kRank = 8;
constexpr std::uint32_t kBlockTokens = 16;
constexpr std::uint32_t kPromptTokens = 32;  // at most
constexpr const char* kAmpleCapacity = "256MiB";
constexpr const char* kFenceTimeout_ms = "1500";
constexpr std::int64_t kTtl_ms = 5000;
constexpr Duration kUndisturbedTimeout = std::chrono::minutes(3);
/// Between the starts of two processes of a tenant, whose adapter may be evicted meanwhile.
constexpr Duration kStartInterval = std::chrono::seconds(2);
constexpr std::array kPrompts{"Once upon a time", "There was a little girl who", "One day a dog"};

runner::TenantSpec customer(const Settings& settings, std::uint32_t i) {
  const std::string name = fmt::format("c{}", i);
  const std::uint32_t tokens = settings.max_tokens * (2 + i % 3) / 4;
  return {.name = name,
          .prompt = kPrompts[i % kPrompts.size()],
          .seed = settings.seed + i,
          .max_tokens = tokens,
          // The whole text, so that its lease does not grow.
          .blocks = (kPromptTokens + tokens) / kBlockTokens + 1,
          .adapter = name,
          .is_resumable = i % 2 == 0};
}

std::uint32_t extents_of(const LeaseSizes& sizes) {
  return kRoomFor * (sizes.text_extents + sizes.adapter_extents);
}

std::vector<std::string> capacity_arguments(const LeaseSizes& sizes) {
  if (sizes.extent_bytes == 0) return {"--capacity", kAmpleCapacity};
  const std::uint32_t extents = extents_of(sizes);
  return {"--capacity", std::to_string(extents * sizes.extent_bytes), "--max-extents",
          std::to_string(extents)};
}

void measure(const std::vector<wire::LeaseView>& leases, LeaseSizes& sizes) {
  for (const wire::LeaseView& lease : leases) {
    if (lease.extents == 0) continue;
    const bool is_adapter = lease.scope == wire::LeaseScope::Adapter;
    std::uint32_t& most = is_adapter ? sizes.adapter_extents : sizes.text_extents;
    most = std::max(most, lease.extents);
    sizes.extent_bytes = lease.size_bytes / lease.extents;
  }
}

}  // namespace

Result<Customers> make_customers(const Settings& settings, const std::filesystem::path& directory) {
  const GgufFile file = TRY(GgufFile::open(settings.model_path));
  const ModelConfig config = TRY(read_config(file));
  Customers customers{.specs = {}, .adapters = directory / "adapters", .sizes = {}};
  std::filesystem::create_directory(customers.adapters);
  make_model::TargetRanks ranks;
  ranks.fill(kRank);
  for (std::uint32_t i = 0; i < kCustomers; ++i) {
    customers.specs.push_back(customer(settings, i));
    const std::string path = customers.adapters / (customers.specs.back().name + ".gguf");
    (void)TRY(make_model::write_adapter({.model = make_model::base_of(config),
                                         .ranks = ranks,
                                         .alpha = static_cast<float>(kRank),
                                         .seed = settings.seed + i},
                                        path));
  }
  return customers;
}

CustomerSystem::CustomerSystem(const Settings& settings, const Customers& customers,
                               const runner::Poller& poller, std::filesystem::path directory)
    : customers_(customers), system_(config(settings, std::move(directory)), poller) {
  system_.add_worker("w0", settings.model_path,
                     {"--threads", "1", "--slow-motion-us", std::to_string(settings.slow_motion_us),
                      "--adapters", customers.adapters});
  for (const runner::TenantSpec& spec : customers.specs) system_.add_tenant(spec);
  system_.record().has_adapters = true;
}

runner::SystemConfig CustomerSystem::config(const Settings& settings,
                                            std::filesystem::path directory) {
  std::vector<std::string> arguments = capacity_arguments(customers_.sizes);
  arguments.insert(arguments.end(), {"--fence-timeout-ms", kFenceTimeout_ms});
  return {.bin_dir = settings.bin_dir,
          .directory = std::move(directory),
          .broker_arguments = std::move(arguments),
          .restarts_broker = true,
          .restarts_workers = true,
          .has_store = true,
          .logs_events = true,
          .samples_status = true,
          .start_interval = kStartInterval,
          .on_connected = [this](BrokerView& broker) { return set_up(broker); }};
}

Result<void> CustomerSystem::set_up(BrokerView& broker) {
  if (is_set_up_) return {};
  for (const runner::TenantSpec& spec : customers_.specs) {
    TRY(broker.command(wire::TenantAdmit{.tenant = {spec.name},
                                         .max_concurrent = 4,
                                         .max_blocks = 1000,
                                         .ttl_ms = kTtl_ms,
                                         .max_adapters = 1,
                                         .max_adapter_bytes = std::uint64_t{64} << 20}));
    TRY(add_adapter(broker, spec.adapter));
  }
  is_set_up_ = true;
  return {};
}

Result<void> add_adapter(BrokerView& broker, const std::string& customer) {
  return broker.command(wire::AdapterAdd{
      .adapter = {customer}, .file = customer + ".gguf", .tenant = TenantId{customer}});
}

Result<void> run_undisturbed(const Settings& settings, Customers& customers,
                             const runner::Poller& poller, const std::filesystem::path& directory) {
  CustomerSystem calm(settings, customers, poller, directory);
  runner::System& system = calm.system();
  LeaseSizes sizes;
  TRY(system.poll_until(
      [&]() -> runner::Missing {
        BrokerView* const broker = system.view();
        const auto leases = broker ? broker->leases() : fail(Errc::BrokerLost, "");
        if (leases) measure(*leases, sizes);
        for (const runner::Tenant& tenant : system.tenants())
          if (runner::whole_texts(system.record(), tenant.spec.name) == 0)
            return "the undisturbed text of " + tenant.spec.name + " did not end";
        return std::nullopt;
      },
      kUndisturbedTimeout, runner::Starts::Tenants));
  system.keep_undisturbed();
  for (std::size_t i = 0; i < customers.specs.size(); ++i)
    customers.specs[i].undisturbed = system.tenants()[i].spec.undisturbed;
  customers.sizes = sizes;
  return {};
}

}  // namespace leasehold::soak
