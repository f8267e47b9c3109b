#include "tests/checks/soak/adapters/adapters_run.hpp"

#include <iterator>
#include <set>

#include "tests/checks/runner/script_runner.hpp"
#include "tests/checks/soak/adapters/customers.hpp"

namespace leasehold::soak {
namespace {

namespace fs = std::filesystem;
using runner::ActionKind;
using runner::Missing;
using runner::ScriptAction;
using runner::Starts;

/// Long enough for a loaded machine, where adapters wait for memory.
constexpr Duration kTextsTimeout = std::chrono::minutes(10);
constexpr Duration kSettleTimeout = std::chrono::minutes(3);
constexpr std::uint32_t kMaxRoundSeconds = 120;
/// At most this share of the adapters is removed at a time.
constexpr std::size_t kRemovedShare = 4;

class AdaptersRound final : runner::ScriptRunner {
 public:
  AdaptersRound(CustomerSystem& customers, std::uint64_t seed)
      : ScriptRunner(customers.system(), kAdapterScript, seed), system_(customers.system()) {}

  Result<void> run(Duration length) {
    const TimePoint until = system_.clock().now() + length;
    while (system_.clock().now() < until) (void)TRY(run_next());
    system_.resume_all();
    TRY(system_.poll_until([this] { return unregistered(); }, kSettleTimeout, Starts::Tenants));
    system_.record().calm_texts = TRY(runner::await_texts(system_, "last", kTextsTimeout));
    TRY(system_.poll_until([this] { return unsettled(); }, kSettleTimeout, Starts::NoTenants));
    return system_.collect_event_logs();
  }

 private:
  Result<bool> act(const ScriptAction& action) override {
    const auto& tenants = system_.tenants();
    switch (action.kind) {
      case ActionKind::UnloadAdapter:
        return command(
            wire::AdapterUnload{.adapter = {tenants[action.which % tenants.size()].spec.adapter},
                                .worker = system_.workers().front().name});
      case ActionKind::RemoveAdapter:
        return remove(tenants[action.which % tenants.size()].spec.adapter);
      case ActionKind::AddAdapter:
        return !removed_.empty() &&
               add(*std::next(removed_.begin(),
                              static_cast<std::ptrdiff_t>(action.which % removed_.size())));
      default:
        return ScriptRunner::act(action);
    }
  }

  /// False if the broker refuses, or dies before it answers.
  template <class Message>
  bool command(Message message) {
    BrokerView* const broker = system_.view();
    return broker != nullptr && broker->command(std::move(message)).has_value();
  }

  /// An adapter whose removal got no answer may be removed, so it is added again, too.
  bool remove(const std::string& adapter) {
    const bool is_enough = removed_.size() >= system_.tenants().size() / kRemovedShare;
    if (is_enough || !removed_.insert(adapter).second) return false;
    return command(wire::AdapterRemove{.adapter = {adapter}});
  }

  bool add(const std::string& adapter) {
    BrokerView* const broker = system_.view();
    if (broker == nullptr || !add_adapter(*broker, adapter)) return false;
    removed_.erase(adapter);
    return true;
  }

  Missing unregistered() {
    while (!removed_.empty())
      if (!add(std::string(*removed_.begin()))) return "a removed adapter cannot be added";
    return std::nullopt;
  }

  /// Removes the adapters once all texts have ended, so that they leave their memory.
  Missing unsettled() {
    for (const runner::Tenant& tenant : system_.tenants()) {
      if (tenant.process.has_process()) return tenant.spec.name + " never ended";
      if (removed_.contains(tenant.spec.adapter)) continue;
      if (!remove_last(tenant.spec.adapter)) return "adapter " + tenant.spec.adapter + " remains";
    }
    const auto& samples = system_.record().brokers.back().samples;
    system_.record().last = samples.back();
    return runner::missing_unless(runner::is_all_free(samples.back()), "memory never became free");
  }

  bool remove_last(const std::string& adapter) {
    return command(wire::AdapterRemove{.adapter = {adapter}}) && removed_.insert(adapter).second;
  }

  runner::System& system_;
  std::set<std::string> removed_;
};

}  // namespace

Result<void> run_adapters(const Settings& settings, const runner::Poller& poller,
                          const fs::path& directory,
                          const std::function<bool(const runner::Record&)>& on_round) {
  Customers customers = TRY(make_customers(settings, directory));
  fs::create_directory(directory / "calm");
  TRY(run_undisturbed(settings, customers, poller, directory / "calm"));
  const std::uint32_t rounds = (settings.seconds + kMaxRoundSeconds - 1) / kMaxRoundSeconds;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    const fs::path path = directory / std::to_string(settings.seed + round);
    fs::create_directory(path);
    CustomerSystem system(settings, customers, poller, path);
    TRY(AdaptersRound(system, settings.seed + round)
            .run(std::chrono::seconds(settings.seconds / rounds)));
    if (on_round(system.system().record())) fs::remove_all(path);
  }
  return {};
}

}  // namespace leasehold::soak
