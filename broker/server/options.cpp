#include "broker/server/options.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "common/command_line.hpp"
#include "common/device_name.hpp"
#include "common/version.hpp"

namespace leasehold {
namespace {

std::string default_socket() {
  const char* runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  const std::string base = runtime_dir != nullptr && *runtime_dir ? runtime_dir : "/run";
  return base + "/leasehold/broker.sock";
}

const CLI::Validator kOctal(
    [](std::string& text) -> std::string {
      char* end = nullptr;
      const unsigned long mode = std::strtoul(text.c_str(), &end, 8);
      if (text.empty() || *end != '\0' || mode > 0777) return "expected an octal mode like 0660";
      text = std::to_string(mode);
      return {};
    },
    "OCTAL");

/// What is lent, and whose.
void add_memory_options(CLI::App& app, BrokerOptions& options) {
  app.add_option("--capacity", options.capacity_bytes, "KV memory to lend, e.g. 256MiB")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(2ull << 20, 1ull << 50));
  app.add_option("--weights-capacity", options.weights_capacity_bytes,
                 "Memory for model weights, e.g. 4GiB")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--device", options.device,
                 "Whose memory is lent: cpu, cuda:N, or auto (cuda:0 where there is one)")
      ->check(check_device);
  app.add_option("--agent", options.agent,
                 "Program that allocates on the device (default: the one beside this program)");
}

}  // namespace

std::variant<BrokerOptions, int> parse_options(int argc, char** argv) {
  BrokerOptions options{.socket = default_socket()};
  std::int64_t timeout_ms = options.fence_timeout.count();
  std::int64_t worker_timeout_ms = options.worker_timeout.count();
  std::int64_t grace_ms = options.reattach_grace.count();
  std::vector<uid_t> worker_uids;
  CLI::App app{"Leasehold broker: owns the memory and the truth about every lease",
               "leasehold-broker"};
  app.set_version_flag("--version", "leasehold-broker " + std::string(version()));
  app.add_option("--socket", options.socket, "Unix socket to listen on")->capture_default_str();
  app.add_option("--socket-mode", options.socket_mode, "Its mode, octal")->transform(kOctal);
  add_memory_options(app, options);
  app.add_option("--slots", options.slots, "Slots of the lease table")
      ->check(CLI::Range(1u, 1u << 20));
  app.add_option("--max-engine-leases", options.max_engine_leases,
                 "Engine leases one worker may hold; tensor scope takes one for each tensor")
      ->check(CLI::Range(1u, 1u << 16));
  app.add_option("--max-extents", options.max_extents,
                 "Extents the KV memory is cut into at most; more for many small tenants")
      ->check(CLI::Range(1u, 16'384u));
  app.add_option("--fence-timeout-ms", timeout_ms,
                 "How long a worker may owe proof before it is killed")
      ->check(CLI::Range(1, 3'600'000));
  app.add_option("--worker-timeout-ms", worker_timeout_ms,
                 "How long a worker may give no sign of life before it is killed; 0: for ever")
      ->check(CLI::Range(0, 3'600'000));
  app.add_option("--state-dir", options.state_dir,
                 "Directory for journal and token key; without it nothing outlives the broker")
      ->check(not_empty);
  app.add_option("--reattach-grace-ms", grace_ms,
                 "How long a started-again broker waits for the workers of the one before")
      ->check(CLI::Range(0, 3'600'000));
  app.add_option("--worker-uid", worker_uids, "User that may run workers; may be given often");
  app.add_flag("--allow-memory-check", options.allow_memory_check,
               "Let operators read leased memory (extent.open); for demos and tests");
  app.add_option("--log-level", options.log_level, "trace, debug, info, warn or error")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}));
  app.add_option("--event-log", options.event_log,
                 "Append every event to this file, one JSON object per line")
      ->check(not_empty);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  options.fence_timeout = std::chrono::milliseconds(timeout_ms);
  options.worker_timeout = std::chrono::milliseconds(worker_timeout_ms);
  options.reattach_grace = std::chrono::milliseconds(grace_ms);
  options.worker_uids = {worker_uids.begin(), worker_uids.end()};
  if (options.worker_uids.empty()) options.worker_uids.insert(::geteuid());
  return options;
}

}  // namespace leasehold
