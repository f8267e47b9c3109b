#include "tests/checks/demo/tenant_process.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

namespace leasehold::demo {
namespace {

constexpr Duration kPollInterval = std::chrono::milliseconds(20);
// enough for four prompts on a large model
constexpr Duration kIdleTimeout = std::chrono::minutes(5);

}  // namespace

Result<std::unique_ptr<TenantProcess>> TenantProcess::start(const System& system,
                                                            const TenantSpec& spec) {
  std::vector<std::string> arguments{"--temperature",
                                     spec.temperature,
                                     "--seed",
                                     std::to_string(spec.seed),
                                     "--max-tokens",
                                     std::to_string(system.settings().max_tokens),
                                     spec.chat ? "--chat" : "--ignore-eos"};
  if (spec.rebind) arguments.push_back("--rebind");
  auto child = TRY(
      system.programs().start_tenant(spec.name, spec.prompt, {.arguments = std::move(arguments)}));
  return std::unique_ptr<TenantProcess>(new TenantProcess(spec, std::move(child)));
}

Result<void> TenantProcess::read() {
  record_.gone = TRY(read_available(child_.output(), lines_, record_));
  return {};
}

Result<void> TenantProcess::kill() {
  return child_.signal(SIGKILL);
}

Result<void> read_all(System& system, const TenantProcesses& tenants,
                      const std::function<Result<void>()>& on_progress) {
  const SystemClock clock;
  TimePoint last_output = clock.now();
  while (true) {
    std::vector<int> outputs;
    for (const auto& tenant : tenants) {
      if (!tenant->is_over()) outputs.push_back(tenant->output());
    }
    if (outputs.empty()) return {};
    const auto ready = TRY(system.poller().wait(outputs, kPollInterval));
    for (const auto& tenant : tenants) {
      if (std::ranges::find(ready, tenant->output()) != ready.end()) TRY(tenant->read());
    }
    TRY(on_progress());
    TRY(system.check_alive());
    if (!ready.empty()) last_output = clock.now();
    if (clock.now() - last_output > kIdleTimeout) {
      return fail(Errc::TimedOut,
                  "no tenant has printed anything for 5 min; see the logs of the worker");
    }
  }
}

}  // namespace leasehold::demo
