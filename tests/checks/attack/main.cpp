/// leasehold-attacker: one hostile tenant or user without a lease, or one process that only uses a
/// core.
///
/// It runs only when no other process wants a core (SCHED_IDLE), so it slows others down only by
/// the work that it causes in the broker and the worker. Its last output is its report
/// (outcome.hpp).
#include <sched.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/cli/command_line.hpp"
#include "common/cli/number_option.hpp"
#include "common/cli/print_error.hpp"
#include "common/cli/version.hpp"
#include "common/machine/process.hpp"
#include "common/machine/text_file.hpp"
#include "tests/checks/attack/attacks.hpp"

namespace {

using namespace leasehold;
using namespace leasehold::attack;

struct Options {
  Target target;
  std::string api_key_file;
  bool has_own_user = false;
  std::int64_t milliseconds = 1000;
  std::int64_t attack_milliseconds = 700;
  std::uint64_t seed = 1;
  std::uint32_t first = 0;
  std::uint32_t burn_percent = 0;
  std::vector<std::string> without;
};

constexpr Duration kBurnPeriod = std::chrono::milliseconds(10);
constexpr rlim_t kSpareCpuSeconds = 5;
constexpr std::size_t kMaxKeyFileBytes = 128;

void describe(CLI::App& app, Options& options) {
  app.set_version_flag("--version", "leasehold-attacker " + std::string(version()));
  app.add_option("--broker", options.target.broker_socket, "Unix socket of leasehold-broker")
      ->check(check_socket_path);
  app.add_option("--worker", options.target.worker_socket, "Unix socket of leasehold-worker")
      ->check(check_socket_path);
  app.add_option("--tenant", options.target.tenant,
                 "Attack as this tenant; default: without a lease")
      ->check(check_name);
  app.add_option("--http", options.target.http_socket, "Unix socket of the worker's HTTP server")
      ->check(check_socket_path);
  app.add_option("--api-key-file", options.api_key_file,
                 "File with an API key of the tenant, for --http")
      ->check(check_file_path);
  app.add_flag("--own-user", options.has_own_user,
               "The broker runs as another user: include what it allows its own user");
  add_number_option(app, "--milliseconds", options.milliseconds, "How long to attack", 1,
                    3'600'000);
  add_number_option(app, "--attack-milliseconds", options.attack_milliseconds,
                    "Longest run of one attack", 1, 60'000);
  app.add_option("--seed", options.seed, "Seed for guesses and names")->capture_default_str();
  app.add_option("--first", options.first, "Begin with this attack of the list, counted from 0")
      ->capture_default_str();
  app.add_option("--without", options.without, "Leave out this attack; repeatable");
  app.add_option("--burn-percent", options.burn_percent,
                 "Attack nothing and use this share of a core")
      ->check(CLI::Range(1u, 100u));
}

Result<void> read_api_key(Options& options) {
  if (options.api_key_file.empty()) return {};
  options.target.api_key = TRY(read_text_file(options.api_key_file, kMaxKeyFileBytes));
  return {};
}

/// Limits the resources of the process, and gives every other process of the machine precedence.
void lower_priority(const Options& options) {
  const auto seconds = static_cast<rlim_t>(options.milliseconds / 1000) + kSpareCpuSeconds;
  const rlimit cpu{seconds, seconds};
  ::setrlimit(RLIMIT_CPU, &cpu);
  ::setpriority(PRIO_PROCESS, 0, 19);
  const sched_param no_priority{};
  ::sched_setscheduler(0, SCHED_IDLE, &no_priority);
}

std::int64_t cpu_ns() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return (time.tv_sec * 1'000'000 + time.tv_usec) * std::int64_t{1000};
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

void burn(std::uint32_t percent, TimePoint until) {
  const SystemClock clock;
  for (TimePoint period = clock.now(); period < until; period = period + kBurnPeriod) {
    const std::int64_t enough = cpu_ns() + (kBurnPeriod * percent / 100).count();
    while (cpu_ns() < enough && clock.now() < until) {
    }
    sleep_until(period + kBurnPeriod);
  }
}

/// Makes one attack after another until the time ends.
Outcomes attack_all(const Options& options, TimePoint until) {
  const auto attacks = attacks_of({.is_tenant = !options.target.tenant.empty(),
                                   .has_own_user = options.has_own_user,
                                   .has_http = !options.target.api_key.empty()},
                                  options.without);
  Outcomes outcomes;
  SeededRandom random(options.seed);
  const SystemClock clock;
  const Duration longest = std::chrono::milliseconds(options.attack_milliseconds);
  for (std::size_t i = options.first; !attacks.empty() && clock.now() < until; ++i) {
    const Attack& attack = attacks[i % attacks.size()];
    Outcome& outcome = outcomes[std::string(attack.name)];
    Run run{.target = options.target,
            .random = random,
            .outcome = outcome,
            .until = std::min(until, clock.now() + longest)};
    attack.run(run);
    ++outcome.runs;
  }
  return outcomes;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Attack a broker and a worker as one tenant, or without a lease",
               "leasehold-attacker"};
  describe(app, options);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  if (const auto read = read_api_key(options); !read)
    return print_error(app.get_name(), read.error());
  raise_descriptor_limit();
  lower_priority(options);
  const TimePoint until = SystemClock().now() + std::chrono::milliseconds(options.milliseconds);
  AttackerReport report;
  if (options.burn_percent > 0) {
    burn(options.burn_percent, until);
  } else {
    report.attacks = attack_all(options, until);
  }
  report.cpu_ns = cpu_ns();
  std::cout << to_json(report).dump() << std::endl;
  return finish_program(app.get_name(), kExitOk);
}
