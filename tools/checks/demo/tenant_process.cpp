#include "tools/checks/demo/tenant_process.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace leasehold::demo {
namespace {

constexpr Duration kPollInterval = std::chrono::milliseconds(20);
constexpr Duration kIdleTimeout = std::chrono::minutes(5);  // four prompts on a large model

}  // namespace

Result<std::unique_ptr<TenantProcess>> TenantProcess::start(const System& system,
                                                            const TenantSpec& spec) {
  std::vector<std::string> argv{system.program("leasehold-tenant"),
                                "--socket",
                                system.broker_socket(),
                                "--tenant",
                                spec.name,
                                "--prompt",
                                spec.prompt,
                                "--temperature",
                                spec.temperature,
                                "--seed",
                                std::to_string(spec.seed),
                                "--max-tokens",
                                std::to_string(system.settings().max_tokens),
                                "--ignore-eos",
                                "-o",
                                "json"};
  if (spec.rebind) argv.push_back("--rebind");
  auto child = TRY(Child::start({.argv = std::move(argv),
                                 .log_path = system.directory() / ("tenant-" + spec.name + ".log"),
                                 .read_output = true}));
  return std::unique_ptr<TenantProcess>(new TenantProcess(spec, std::move(child)));
}

Result<void> TenantProcess::read() {
  std::array<char, 16 * 1024> bytes;
  const ssize_t got = ::read(child_.output().get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (got < 0) return fail_errno(Errc::SystemError, "read", errno);
  if (got == 0) record_.gone = true;
  lines_.append({bytes.data(), static_cast<std::size_t>(got)});
  while (const auto line = lines_.next()) TRY(note(record_, *line));
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
      return fail(Errc::TimedOut, "no tenant has told anything for 5 min");
    }
  }
}

}  // namespace leasehold::demo
