#include "tests/checks/soak/hostile/attackers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/checks/attack/attacks.hpp"
#include "tests/checks/runner/tenant_record.hpp"

namespace leasehold::soak {
namespace {

constexpr const char* kProgram = "leasehold-attacker";
/// Strangers begin at positions this far apart in the list of attacks; tenants begin at consecutive
/// positions.
constexpr std::uint32_t kStrangersApart = 4;

std::string milliseconds_of(Duration duration) {
  return std::to_string(duration / std::chrono::milliseconds(1));
}

std::vector<std::string> attacker_arguments(const HostileSettings& settings,
                                            const ProgramStarter& programs, const Users& users,
                                            Duration duration) {
  std::vector<std::string> arguments{"--broker",       programs.broker_socket(),
                                     "--worker",       programs.worker_socket(kHostileWorker),
                                     "--milliseconds", milliseconds_of(duration)};
  if (users.are_others()) arguments.emplace_back("--own-user");
  for (const std::string& attack : settings.without) {
    arguments.insert(arguments.end(), {"--without", attack});
  }
  return arguments;
}

}  // namespace

std::string hostile_tenant_name(std::uint32_t index) {
  return fmt::format("hostile-{}", index);
}

std::string http_socket_of(const ProgramStarter& programs) {
  return (programs.directory() / "http.sock").string();
}

std::string api_key_file_of(const ProgramStarter& programs, std::uint32_t index) {
  return (programs.directory() / fmt::format("{}.key", hostile_tenant_name(index))).string();
}

std::vector<std::string> expected_attacks(const HostileSettings& settings, const Users& users) {
  std::set<std::string> names;
  const auto add = [&](bool is_tenant) {
    for (const attack::Attack& each : attack::attacks_of(
             {.is_tenant = is_tenant, .has_own_user = users.are_others(), .has_http = true},
             settings.without))
      names.emplace(each.name);
  };
  if (settings.attackers > 0) add(true);
  if (settings.strangers > 0) add(false);
  return {names.begin(), names.end()};
}

Result<Attackers> Attackers::attack(const HostileSettings& settings, const ProgramStarter& programs,
                                    const Users& users, Duration duration) {
  Attackers attackers;
  const auto start = [&](std::uint32_t first, std::vector<std::string> more,
                         std::optional<uid_t> uid) -> Result<void> {
    auto arguments = attacker_arguments(settings, programs, users, duration);
    arguments.insert(arguments.end(), {"--first", std::to_string(first), "--seed",
                                       std::to_string(settings.seed + first)});
    arguments.insert(arguments.end(), more.begin(), more.end());
    Child child = TRY(programs.start_reading(
        kProgram, {.arguments = std::move(arguments), .log_name = "attackers", .uid = uid}));
    attackers.processes_.push_back({.child = std::move(child), .output = {}});
    return {};
  };
  for (std::uint32_t i = 0; i < settings.attackers; ++i)
    TRY(start(i,
              {"--tenant", hostile_tenant_name(i), "--http", http_socket_of(programs),
               "--api-key-file", api_key_file_of(programs, i)},
              users.tenant(i)));
  for (std::uint32_t i = 0; i < settings.strangers; ++i)
    TRY(start(i * kStrangersApart, {}, users.stranger(i)));
  return attackers;
}

Result<Attackers> Attackers::burn(const HostileSettings& settings, const ProgramStarter& programs,
                                  double cores, Duration duration) {
  Attackers attackers;
  const std::uint32_t count = settings.attackers + settings.strangers;
  const double percent = std::clamp(std::round(100 * cores / std::max(count, 1u)), 1.0, 100.0);
  for (std::uint32_t i = 0; i < count; ++i) {
    Child child = TRY(programs.start_reading(
        kProgram, {.arguments = {"--burn-percent", fmt::format("{:.0f}", percent), "--milliseconds",
                                 milliseconds_of(duration)},
                   .log_name = "attackers"}));
    attackers.processes_.push_back({.child = std::move(child), .output = {}});
  }
  return attackers;
}

Result<bool> Attackers::collect(attack::Outcomes& outcomes) {
  for (Process& process : processes_) {
    if (process.is_over) continue;
    process.is_over = TRY(runner::read_output(process.child.output(), process.output));
    if (!process.is_over) continue;
    const auto report = TRY(attack::attacker_report_from_text(process.output));
    cpu_s_ += static_cast<double>(report.cpu_ns) / 1e9;
    for (const auto& [attack, outcome] : report.attacks) outcomes[attack].add(outcome);
  }
  return std::ranges::all_of(processes_, &Process::is_over);
}

}  // namespace leasehold::soak
