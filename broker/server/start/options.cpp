#include "broker/server/start/options.hpp"

#include <pwd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <vector>

#include "common/cli/command_line.hpp"
#include "common/cli/config_file.hpp"
#include "common/cli/number_option.hpp"
#include "common/cli/size_option.hpp"
#include "common/cli/version.hpp"
#include "common/machine/available_memory.hpp"
#include "common/machine/device_name.hpp"

namespace leasehold {
namespace {

std::string default_socket() {
  const char* runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  const std::string base = runtime_dir != nullptr && *runtime_dir ? runtime_dir : "/run";
  return base + "/leasehold/broker.sock";
}

std::string check_octal(const std::string& text) {
  const bool is_octal = !text.empty() && text.find_first_not_of("01234567") == std::string::npos;
  if (is_octal && std::strtoul(text.c_str(), nullptr, 8) <= 0777) return {};
  return "'" + text + "' is not an octal mode; use one like 0660";
}

void add_socket_options(CLI::App& app, BrokerOptions& options) {
  app.add_option("--socket", options.socket, "Unix socket to listen on")
      ->check(check_socket_path)
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--socket-mode",
         [&options](const std::string& text) {
           options.socket_mode = static_cast<mode_t>(std::strtoul(text.c_str(), nullptr, 8));
         },
         "File mode of the socket, in octal")
      ->check(check_octal)
      ->type_name("OCTAL")
      ->default_str("0660");
}

/// Checks that an extent fits into the KV memory: both pools have the same extent size, which grows
/// with the swap capacity.
std::string check_swap(const BrokerOptions& options) {
  const std::uint64_t most = options.capacity_bytes / 2 * options.max_extents;
  if (options.swap_capacity_bytes <= most) return {};
  return "--swap-capacity must be at most " + std::to_string(most) +
         " for this --capacity and --max-extents";
}

/// Checks the spill options. Only swapped sequences are spilled, so spill files need swap.
std::string check_spill(const BrokerOptions& options) {
  if (options.spill_dir.empty() != (options.spill_capacity_bytes == 0))
    return "--spill-dir and --spill-capacity are given together, or neither is";
  if (options.spill_dir.empty() || options.swap_capacity_bytes > 0) return {};
  return "--spill-dir needs --swap-capacity: only swapped blocks are spilled";
}

void add_memory_options(CLI::App& app, BrokerOptions& options) {
  if (const auto memory = machine_memory())  // a small machine has no room for the default
    options.weights_capacity_bytes = std::min(options.weights_capacity_bytes, memory->total_bytes);
  add_size_option(app, "--capacity", options.capacity_bytes,
                  "KV memory to lend, for example 256MiB", {.low = 2ull << 20, .high = 1ull << 50})
      ->default_str("256MiB");
  add_size_option(
      app, "--clear-ahead", options.clear_ahead_bytes,
      "Free KV memory of the host to clear before it is granted: as much as the largest "
      "lease has, and at most this, for example 1GiB; 0 means none",
      {.low = 2ull << 20, .high = 1ull << 50, .or_zero = true})
      ->default_str("256MiB");
  add_size_option(app, "--swap-capacity", options.swap_capacity_bytes,
                  "Host memory to lend for swapped KV blocks, for example 1GiB; 0 means none",
                  {.low = 2ull << 20, .high = 1ull << 50, .or_zero = true})
      ->default_str("0");
  app.add_option("--spill-dir", options.spill_dir,
                 "Directory on disk for sealed KV blocks that find no room in swap")
      ->check(check_directory_path);
  add_size_option(app, "--spill-capacity", options.spill_capacity_bytes,
                  "Space to lend there, for example 64GiB; a worker gets half of what is left of "
                  "its user's share",
                  {.low = 2ull << 20, .high = 1ull << 50});
  add_size_option(app, "--weights-capacity", options.weights_capacity_bytes,
                  "Memory for model weights, for example 2GiB; each --worker-uid has an equal "
                  "share; default: 4GiB, or the machine's memory if that is less")
      ->default_str(size_text(options.weights_capacity_bytes));
  app.add_option("--device", options.device,
                 "Device whose memory is lent: cpu, cuda:N, or auto (cuda:0 if usable, else cpu)")
      ->check(check_device)
      ->capture_default_str();
  app.add_option("--agent", options.agent,
                 "Device agent program (default: leasehold-device-agent beside the broker)");
}

void add_limit_options(CLI::App& app, BrokerOptions& options) {
  add_number_option(app, "--slots", options.slots, "Number of slots in the lease table", 1u,
                    1u << 20);
  add_number_option(app, "--max-engine-leases", options.max_engine_leases,
                    "Maximum engine leases per worker; tensor scope uses one per tensor", 1u,
                    1u << 16);
  add_number_option(
      app, "--max-shared-blocks", options.max_shared_blocks,
      "KV blocks that published texts may hold on one worker, in whole extents; 0 allows "
      "none",
      0u, 1u << 20);
  add_size_option(app, "--max-shared-adapter-bytes", options.max_shared_adapter_bytes,
                  "Memory that shared adapters may hold on one worker, for example 256MiB; 0 "
                  "allows none",
                  {.low = 1, .high = 1ull << 50, .or_zero = true})
      ->default_str("1GiB");
  add_number_option(app, "--max-extents", options.max_extents,
                    "Maximum number of extents in each pool; more suits many small tenants", 1u,
                    16'384u);
}

void add_timeout(CLI::App& app, const char* name, std::chrono::milliseconds& timeout, int least,
                 const char* meaning) {
  app.add_option_function<std::int64_t>(
         name, [&timeout](std::int64_t ms) { timeout = std::chrono::milliseconds(ms); }, meaning)
      ->check(CLI::Range(least, 3'600'000))
      ->default_str(std::to_string(timeout.count()));
}

void add_timeout_options(CLI::App& app, BrokerOptions& options) {
  add_timeout(app, "--fence-timeout-ms", options.fence_timeout, 1,
              "Time a worker has to prove a fence before it is killed");
  add_timeout(
      app, "--reclaim-grace-ms", options.reclaim_grace, 0,
      "Time a scavenger's requests get to finish when a guaranteed tenant needs the memory");
  add_timeout(app, "--adopt-grace-ms", options.adopt_grace, 0,
              "Time the KV memory of a dead worker's tenants is kept for its successor; 0 keeps "
              "nothing");
  add_timeout(app, "--worker-timeout-ms", options.worker_timeout, 0,
              "Time a worker may stay unresponsive before it is killed; 0 disables the timeout");
  add_timeout(app, "--reattach-grace-ms", options.reattach_grace, 0,
              "Time a restarted broker waits for the workers of its predecessor");
}

void add_state_options(CLI::App& app, BrokerOptions& options) {
  app.add_option("--state-dir", options.state_dir,
                 "Directory for the journal and the token key; without it no state is kept")
      ->check(check_directory_path);
  add_number_option(app, "--audit-records", options.audit_records,
                    "Audit records to keep in --state-dir, about 600 bytes each",
                    std::uint64_t{1000}, std::uint64_t{1} << 32);
  add_number_option(
      app, "--audit-days", options.audit_days,
      "Days after which an audit record is removed once newer ones come; 0 means never", 0u,
      36'500u);
  app.add_flag("--audit-trust-clock", options.audit_trust_clock,
               "Let --audit-days follow the machine's clock again after it jumped; for one start");
  app.add_flag("--allow-memory-check", options.allow_memory_check,
               "Let operators read leased memory (extent.open); for demos and tests");
  app.add_option("--log-level", options.log_level, "Log level: trace, debug, info, warn or error")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}))
      ->capture_default_str();
  app.add_option("--event-log", options.event_log,
                 "File to append every event to, one JSON object per line")
      ->check(check_file_path);
  add_size_option(app, "--event-log-bytes", options.event_log_bytes,
                  "Size at which the event log is renamed to FILE.1, where FILE is its path, and a "
                  "new one begins, for example 256MiB",
                  {.low = 64ull << 10, .high = 1ull << 40})
      ->default_str("256MiB");
}

/// `text` is a user id or the name of a user.
std::optional<uid_t> find_user(const std::string& text) {
  uid_t uid = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, uid);
  if (error == std::errc() && stopped == end) return uid;
  const passwd* const user = ::getpwnam(text.c_str());
  return user == nullptr ? std::nullopt : std::optional(user->pw_uid);
}

std::string check_user(const std::string& text) {
  return find_user(text) ? "" : "there is no user '" + text + "'; `getent passwd` lists all";
}

}  // namespace

std::variant<BrokerOptions, int> parse_options(int argc, char** argv) {
  BrokerOptions options{.socket = default_socket()};
  std::vector<std::string> users;
  std::vector<std::string> observers;
  CLI::App app{"Leasehold broker: owns the memory and the state of every lease",
               "leasehold-broker"};
  app.set_version_flag("--version", "leasehold-broker " + std::string(version()));
  add_config_options(app);
  add_socket_options(app, options);
  add_memory_options(app, options);
  add_limit_options(app, options);
  add_timeout_options(app, options);
  app.add_option("--worker-uid", users,
                 "User that may run workers, by id or name; repeatable; default: the broker's user")
      ->check(check_user);
  app.add_option("--observer-uid", observers,
                 "User that may query state and change nothing, by id or name; repeatable")
      ->check(check_user);
  add_state_options(app, options);
  app.final_callback([&options] {
    for (std::string wrong : {check_swap(options), check_spill(options)})
      if (!wrong.empty()) throw CLI::ValidationError(std::move(wrong));
  });
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  if (const auto ended = finish_config(app)) return *ended;
  if (auto values = config_values(app)) options.config = *std::move(values);
  for (const std::string& user : users)
    if (const auto uid = find_user(user)) options.worker_uids.insert(*uid);
  for (const std::string& user : observers)
    if (const auto uid = find_user(user)) options.observer_uids.insert(*uid);
  if (options.worker_uids.empty()) options.worker_uids.insert(::geteuid());
  return options;
}

}  // namespace leasehold
