#include "tests/checks/demo/system.hpp"

#include <fmt/format.h>

#include "common/machine/available_memory.hpp"

namespace leasehold::demo {
namespace {

constexpr const char* kWorker = "demo";
constexpr Duration kStartTimeout = std::chrono::minutes(2);
/// Long enough to load a large model from a slow disk; a worker that fails exits much earlier.
constexpr Duration kLoadTimeout = std::chrono::minutes(15);
/// Enough for the four texts with a 7B model without grouped heads, which takes 0.5 MiB per token.
/// Only memory that is written is allocated.
constexpr const char* kCapacity = "1GiB";
constexpr const char* kSwapCapacity = "64MiB";
/// No worker hangs in the demo, so a silent worker is a slow one.
constexpr const char* kBrokerTimeout_ms = "300000";

}  // namespace

Result<std::unique_ptr<System>> System::start(const Settings& settings, const Poller& poller) {
  const auto pause = [&poller](Duration at_most) -> Result<void> {
    TRY(poller.wait({}, at_most));
    return {};
  };
  auto local =
      TRY(LocalSystem::create({.name = "demo", .bin_dir = settings.bin_dir, .pause = pause}));
  std::unique_ptr<System> system(new System(settings, poller, std::move(local)));
  const auto started = system->start_processes();
  if (started) return system;
  system->keep_logs();
  return fail(started.error().code, fmt::format("{} (logs: {})", started.error().detail,
                                                system->programs().directory().string()));
}

Result<void> System::start_processes() {
  const std::uint64_t all_memory = TRY(machine_memory()).total_bytes;
  std::vector<std::string> arguments{"--capacity",           kCapacity,
                                     "--swap-capacity",      kSwapCapacity,
                                     "--weights-capacity",   std::to_string(all_memory),
                                     "--allow-memory-check", "--fence-timeout-ms",
                                     kBrokerTimeout_ms,      "--worker-timeout-ms",
                                     kBrokerTimeout_ms};
  if (!settings_.device.empty()) {
    arguments.insert(arguments.end(), {"--device", settings_.device});
  }
  TRY(local_->start_broker({.arguments = std::move(arguments)}, kStartTimeout));
  TRY(start_worker());
  return local_->await_worker(kWorker, kLoadTimeout);
}

Result<void> System::start_worker() {
  return local_->start_worker(
      kWorker, settings_.model_path,
      {.arguments = {"--slow-motion-us", std::to_string(settings_.slow_motion_us)}});
}

Result<void> System::replace_killed_worker() {
  local_->kill_worker(kWorker);
  return start_worker();
}

Result<void> System::brokerctl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--socket", programs().broker_socket()});
  const int status =
      TRY(local_->run("brokerctl", {.arguments = std::move(arguments)}, kStartTimeout));
  if (status == 0) return {};
  return fail(Errc::SystemError, fmt::format("brokerctl ended with {}; {}", status,
                                             programs().end_of_log("brokerctl")));
}

}  // namespace leasehold::demo
