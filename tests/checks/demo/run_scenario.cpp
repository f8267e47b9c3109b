#include "tests/checks/demo/run_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "common/machine/available_memory.hpp"

namespace leasehold::demo {
namespace {

using runner::Starts;
using runner::Tenant;
using runner::TenantSpec;

constexpr const char* kWorker = "demo";
constexpr Duration kStartTimeout = std::chrono::minutes(2);
/// Long enough to load a large model from a slow disk; a worker that fails exits much earlier.
constexpr Duration kLoadTimeout = std::chrono::minutes(15);
/// Long enough for a slow machine; the wait ends when all memory is free.
constexpr Duration kSettleTimeout = std::chrono::minutes(2);
/// Enough for four prompts on a large model.
constexpr Duration kIdleTimeout = std::chrono::minutes(5);
constexpr Duration kExitInterval = std::chrono::milliseconds(2);
/// Enough for the four texts with a 7B model without grouped heads, which takes 0.5 MiB per token.
/// Only memory that is written is allocated.
constexpr const char* kCapacity = "1GiB";
constexpr const char* kSwapCapacity = "64MiB";
/// No worker hangs in the demo, so a silent worker is a slow one.
constexpr const char* kBrokerTimeout_ms = "300000";

/// How many tokens of a stream precede each event, which is in the middle of the stream.
struct Moments {
  std::size_t keep_memory;
  std::size_t revoke;
  std::size_t kill_worker;
  std::size_t kill;
};

/// Streams longer than 120 tokens have the events at the same tokens as streams of 120.
Moments moments_in(std::uint32_t max_tokens) {
  const std::size_t twelfth = std::min(max_tokens, 120u) / 12;
  return {.keep_memory = 2 * twelfth,
          .revoke = 4 * twelfth,
          .kill_worker = 5 * twelfth,
          .kill = 6 * twelfth};
}

/// The tenant whose adapter is revoked, and a neighbour with another one.
constexpr std::pair<const char*, const char*> kAdapters[] = {{"A", "sailor"}, {"D", "lines"}};

/// An event of the fixed script. Happens once, when the tenant has this many tokens.
struct Event {
  std::string tenant;
  std::size_t after_tokens = 0;
  std::function<Result<void>(Tenant&)> act;
  bool happened = false;
};

std::vector<TenantResult> stories() {
  return {{.spec = {.name = "A", .prompt = "Once upon a time", .temperature = "0"}},
          {.spec = {.name = "B", .prompt = "The little fox", .seed = 7}},
          {.spec = {.name = "C", .prompt = "One morning", .seed = 11}},
          {.spec = {.name = "D", .prompt = "In the garden", .temperature = "0"}}};
}

/// Questions with answers of 64 tokens or more.
std::vector<TenantResult> chats() {
  return {{.spec = {.name = "A",
                    .prompt = "How do plants make food from sunlight? Explain it to a child.",
                    .temperature = "0"},
           .expects = "photosynthesis"},
          {.spec = {.name = "B",
                    .prompt = "Write a short letter to a friend about a day at the beach.",
                    .temperature = "0.6",
                    .seed = 7},
           .expects = "beach"},
          {.spec = {.name = "C",
                    .prompt = "Give me a recipe for vegetable soup.",
                    .temperature = "0.6",
                    .seed = 11}},
          {.spec = {.name = "D", .prompt = "Why is the sky blue?", .temperature = "0"},
           .expects = "Rayleigh scattering"}};
}

Result<std::vector<std::string>> broker_arguments(const Settings& settings) {
  const std::uint64_t all_memory = TRY(machine_memory()).total_bytes;
  std::vector<std::string> arguments{"--capacity",           kCapacity,
                                     "--swap-capacity",      kSwapCapacity,
                                     "--weights-capacity",   std::to_string(all_memory),
                                     "--allow-memory-check", "--fence-timeout-ms",
                                     kBrokerTimeout_ms,      "--worker-timeout-ms",
                                     kBrokerTimeout_ms};
  if (!settings.device.empty()) arguments.insert(arguments.end(), {"--device", settings.device});
  return arguments;
}

class Scenario {
 public:
  Scenario(const Settings& settings, runner::System& system, Display& display, std::ostream& out)
      : system_(system),
        display_(display),
        out_(out),
        moments_(moments_in(settings.max_tokens)),
        has_adapters_(!settings.adapters_dir.empty()) {
    std::vector<std::string> arguments{"--slow-motion-us", std::to_string(settings.slow_motion_us)};
    if (has_adapters_) arguments.insert(arguments.end(), {"--adapters", settings.adapters_dir});
    system_.add_worker(kWorker, settings.model_path, std::move(arguments));
    seen_.results = settings.chat ? chats() : stories();
    for (TenantResult& result : seen_.results) {
      result.spec.max_tokens = settings.max_tokens;
      result.spec.chat = settings.chat;
      result.spec.rebind = result.spec.name == seen_.revoked;
      system_.add_tenant(result.spec);
    }
  }

  Result<Observation> run() {
    TRY(system_.await_ready(kLoadTimeout));
    seen_.reads_memory = TRY(status()).device == "cpu";
    seen_.enough_tokens = moments_.kill + 4;
    TRY(admit());
    TRY(run_undisturbed());
    TRY(run_disturbed());
    TRY(settle());
    TRY(recheck_memory());
    if (has_adapters_) TRY(run_with_revoked_adapter());
    BrokerView& broker = *TRY(system_.connected());
    system_.record().brokers.front().events = TRY(broker.events());
    TRY(run_with_killed_worker());
    TRY(settle());
    system_.record().last = TRY(status());
    static_cast<runner::Record&>(seen_) = std::move(system_.record());
    return std::move(seen_);
  }

 private:
  Result<wire::StatusView> status() {
    BrokerView* const broker = TRY(system_.connected());
    return broker->status();
  }

  /// Runs brokerctl with these arguments. Errors: TimedOut; SystemError, with the end of its log,
  /// if brokerctl does not exit with 0.
  Result<void> brokerctl(std::vector<std::string> arguments) {
    const ProgramStarter& programs = system_.programs();
    arguments.insert(arguments.begin(), {"--socket", programs.broker_socket()});
    Child child = TRY(programs.start("brokerctl", {.arguments = std::move(arguments)}));
    const TimePoint deadline = system_.clock().now() + kStartTimeout;
    std::optional<int> status;
    while (!(status = child.status())) {
      TRY(system_.poller().wait({}, kExitInterval));
      if (system_.clock().now() > deadline) return fail(Errc::TimedOut, "brokerctl does not end");
    }
    if (*status == 0) return {};
    return fail(Errc::SystemError, fmt::format("brokerctl ended with {}; {}", *status,
                                               programs.end_of_log("brokerctl")));
  }

  Result<void> admit() {
    out_ << "Four tenants are admitted.\n";
    for (const TenantResult& result : seen_.results)
      TRY(brokerctl({"tenants", "admit", result.spec.name}));
    return {};
  }

  Result<void> run_undisturbed() {
    out_ << "Undisturbed run: each tenant alone, for comparison." << std::endl;
    for (std::size_t i = 0; i < seen_.results.size(); ++i) {
      Tenant& tenant = system_.tenants()[i];
      TRY(system_.start_tenant(tenant));
      TRY(run_events({}));
      seen_.results[i].undisturbed = tenant.record;
      if (!tenant.record.completed) {
        return fail(Errc::SystemError,
                    fmt::format("tenant {} failed in the undisturbed run: {}", tenant.spec.name,
                                tenant.record.failed.value_or("its output ended early")));
      }
    }
    return {};
  }

  Result<void> run_disturbed() {
    out_ << fmt::format(
                "Side by side: B's lease is revoked after {} tokens, C's process is killed "
                "after {}.\n",
                moments_.revoke, moments_.kill)
         << std::endl;
    const auto keep_memory = [this](const Tenant& tenant) {
      return open_memory(tenant.record.leases.back());
    };
    const auto revoke = [this](const Tenant& tenant) {
      return brokerctl({"revoke", "--tenant", tenant.spec.name});
    };
    const auto kill = [](Tenant& tenant) -> Result<void> {
      if (tenant.process.is_running()) tenant.process.kill();
      return {};
    };
    is_shown_ = true;
    TRY(run_side_by_side({{seen_.revoked, moments_.keep_memory, keep_memory},
                          {seen_.killed, moments_.keep_memory, keep_memory},
                          {seen_.revoked, moments_.revoke, revoke},
                          {seen_.killed, moments_.kill, kill}},
                         &TenantResult::observed));
    is_shown_ = false;
    display_.finish(records());
    return {};
  }

  /// Adapters hold memory until they are removed.
  Result<void> run_with_revoked_adapter() {
    out_
        << fmt::format(
               "Side by side under adapters: A's adapter is revoked after {} tokens, D has another "
               "one, B and C have none.\n",
               moments_.revoke)
        << std::endl;
    for (const auto& [tenant, adapter] : kAdapters) TRY(run_alone_adapted(tenant, adapter));
    const auto keep_memory = [this](const Tenant&) -> Result<void> {
      const LeaseId lease = TRY(adapter_lease());
      seen_.adapter = {.tenant = kAdapters[0].first, .first = lease, .second = {}};
      return open_memory(seen_.adapter->first);
    };
    const auto revoke = [this](const Tenant& tenant) {
      return brokerctl({"revoke", "--adapter", tenant.spec.adapter});
    };
    TRY(run_side_by_side({{kAdapters[0].first, moments_.keep_memory, keep_memory},
                          {kAdapters[0].first, moments_.revoke, revoke}},
                         &TenantResult::adapted));
    if (seen_.adapter) seen_.adapter->second = TRY(adapter_lease());
    for (const auto& [tenant, adapter] : kAdapters) TRY(brokerctl({"adapters", "remove", adapter}));
    for (Tenant& tenant : system_.tenants()) tenant.spec.adapter.clear();
    TRY(settle());
    return recheck_memory();
  }

  /// Gives the tenant this adapter, and runs its request alone.
  Result<void> run_alone_adapted(const std::string& name, const std::string& adapter) {
    TRY(brokerctl(
        {"tenants", "admit", name, "--max-adapters", "1", "--max-adapter-bytes", kCapacity}));
    TRY(brokerctl({"adapters", "add", adapter, "--file",
                   fmt::format("leasehold-stories-{}.gguf", adapter), "--tenant", name}));
    const auto is_it = [&name](const auto& each) { return each.spec.name == name; };
    Tenant& tenant = *std::ranges::find_if(system_.tenants(), is_it);
    TenantResult& result = *std::ranges::find_if(seen_.results, is_it);
    tenant.spec.adapter = result.adapter = adapter;
    tenant.spec.rebind = true;
    TRY(system_.start_tenant(tenant));
    TRY(run_events({}));
    result.adapted_alone = tenant.record;
    return {};
  }

  /// The live lease of the adapter that is revoked.
  Result<LeaseId> adapter_lease() {
    BrokerView* const broker = TRY(system_.connected());
    const auto lease = TRY(broker->live_adapter_lease(kAdapters[0].second));
    if (lease) return *lease;
    return fail(Errc::SystemError, fmt::format("adapter {} holds no memory", kAdapters[0].second));
  }

  Result<void> run_with_killed_worker() {
    out_ << fmt::format(
                "Side by side again: the worker's process is killed after {} tokens of B, and "
                "another one is started.\n",
                moments_.kill_worker)
         << std::endl;
    for (Tenant& tenant : system_.tenants()) tenant.spec.rebind = true;
    const auto kill_worker = [this](Tenant&) -> Result<void> {
      system_.workers().front().process.kill();
      return {};
    };
    TRY(run_side_by_side({{seen_.revoked, moments_.kill_worker, kill_worker}},
                         &TenantResult::recovered));
    for (const wire::ModeSummary& mode : TRY(status()).rebinds)
      if (mode.mode == "adopt") seen_.adopted = mode.rebinds.since_start.count;
    return {};
  }

  Result<void> run_side_by_side(std::vector<Event> script, TenantRecord TenantResult::* record) {
    for (Tenant& tenant : system_.tenants()) TRY(system_.start_tenant(tenant));
    TRY(run_events(std::move(script)));
    for (std::size_t i = 0; i < seen_.results.size(); ++i)
      seen_.results[i].*record = system_.tenants()[i].record;
    return {};
  }

  /// Reads all tenants until all have ended, and runs the script.
  Result<void> run_events(std::vector<Event> script) {
    const TimePoint begin = system_.clock().now();
    while (system_.any_tenant_running()) {
      TRY(system_.poll(Starts::NoTenants));
      for (Event& event : script) {
        Tenant& tenant = *std::ranges::find_if(
            system_.tenants(), [&](const Tenant& each) { return each.spec.name == event.tenant; });
        if (event.happened || tenant.record.tokens.size() < event.after_tokens) continue;
        event.happened = true;
        TRY(event.act(tenant));
      }
      if (is_shown_) display_.show(records());
      if (system_.clock().now() - std::max(begin, system_.last_output()) > kIdleTimeout) {
        return fail(Errc::TimedOut,
                    "no tenant has printed anything for 5 min; see the logs of the worker");
      }
    }
    return {};
  }

  /// Opens the memory of the lease before its revocation.
  Result<void> open_memory(LeaseId lease) {
    if (!seen_.reads_memory) return {};
    BrokerView* const broker = TRY(system_.connected());
    for (auto& extent : TRY(runner::open_extents(*broker, lease)))
      opened_.push_back(std::move(extent));
    return {};
  }

  /// Waits until all memory is free. After a timeout the checks report the missing memory.
  Result<void> settle() {
    const auto settled = system_.poll_until(
        [this] {
          const auto& samples = system_.record().brokers.front().samples;
          return runner::missing_unless(runner::is_all_free(samples.back()),
                                        "some memory is not free");
        },
        kSettleTimeout, Starts::NoTenants);
    const bool is_late = !settled && settled.error().code == Errc::TimedOut;
    return is_late && !system_.poller().interrupted() ? Result<void>{} : settled;
  }

  /// Keeps the ended leases, too, before later ones use their slots.
  Result<void> recheck_memory() {
    BrokerView* const broker = TRY(system_.connected());
    for (const wire::LeaseView& lease : TRY(broker->leases())) seen_.leases.push_back(lease);
    const auto listed = TRY(broker->extents());
    for (const runner::OpenedExtent& opened : std::exchange(opened_, {})) {
      auto after = TRY(runner::read_memory(opened.object));
      const auto view = std::ranges::find(listed, opened.extent, &wire::ExtentView::extent);
      seen_.extents.push_back({.extent = opened.extent,
                               .lease = opened.lease,
                               .before = opened.before,
                               .after = std::move(after),
                               .still_held = view != listed.end() && view->state != "Free"});
    }
    return {};
  }

  Records records() const {
    Records all;
    for (const Tenant& tenant : system_.tenants()) all.push_back(tenant.record);
    return all;
  }

  runner::System& system_;
  Display& display_;
  std::ostream& out_;
  Moments moments_;
  bool has_adapters_;
  Observation seen_;
  std::vector<runner::OpenedExtent> opened_;
  bool is_shown_ = false;
};

}  // namespace

Result<Observation> run_scenario(const Settings& settings, const runner::Poller& poller,
                                 const std::filesystem::path& directory, Display& display,
                                 std::ostream& out) {
  auto arguments = TRY(broker_arguments(settings));
  runner::System system({.bin_dir = settings.bin_dir,
                         .directory = directory,
                         .broker_arguments = std::move(arguments),
                         .samples_status = true},
                        poller);
  return Scenario(settings, system, display, out).run();
}

}  // namespace leasehold::demo
