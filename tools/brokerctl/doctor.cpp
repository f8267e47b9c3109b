#include "tools/brokerctl/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "ipc/segment/segment_layout.hpp"
#include "tools/cli/json_text.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::brokerctl {
namespace {

constexpr int kExitWrong = 1;
/// The kernel version of Debian 12, on which the tests run.
constexpr int kTestedMajor = 6;
constexpr int kTestedMinor = 1;
/// pidfd_open(2): the broker identifies every process by a pidfd.
constexpr int kLeastMajor = 5;
constexpr int kLeastMinor = 3;
/// The default of --slots.
constexpr std::uint32_t kUsualSlots = 4096;
/// Space for the journal with some hundred thousand audit records, its log and its reserve.
constexpr std::uint64_t kStateBytes = 64 << 20;
/// Step by which the journal's reserve grows; without that space the broker grants no lease.
constexpr std::uint64_t kReserveStepBytes = 1 << 20;

std::string_view name(Grade grade) {
  constexpr std::string_view kNames[] = {"ok", "note", "wrong"};
  return kNames[static_cast<unsigned>(grade)];
}

struct Release {
  int major = 0;
  int minor = 0;
  auto operator<=>(const Release&) const = default;
};

/// Returns zeros for malformed text.
Release parse_release(const std::string& text) {
  Release release;
  const char* const end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, release.major);
  if (major.ec == std::errc() && major.ptr != end && *major.ptr == '.')
    std::from_chars(major.ptr + 1, end, release.minor);
  return release;
}

Finding kernel(const MachineFacts& facts) {
  Finding finding{.check = "kernel", .found = facts.kernel_release};
  const Release release = parse_release(facts.kernel_release);
  if (release >= Release{kTestedMajor, kTestedMinor}) return finding;
  const bool works = release >= Release{kLeastMajor, kLeastMinor};
  finding.grade = works ? Grade::Note : Grade::Wrong;
  finding.found +=
      fmt::format("; {}.{} is the oldest that is {}", works ? kTestedMajor : kLeastMajor,
                  works ? kTestedMinor : kLeastMinor, works ? "tested" : "possible (pidfd_open)");
  finding.next = "apt install linux-image-amd64 && reboot";
  return finding;
}

/// Too low a limit is only a Note: without locked pages a poll may wait for a page once.
Finding memlock(const MachineFacts& facts) {
  const std::uint64_t needed = table_size_bytes(kUsualSlots) + worker_segment_size_bytes();
  const bool is_unlimited = facts.memlock_bytes == std::numeric_limits<std::uint64_t>::max();
  Finding finding{.check = "memlock",
                  .found = is_unlimited ? "unlimited" : cli::bytes_text(facts.memlock_bytes)};
  if (facts.may_lock_more || facts.memlock_bytes >= needed) return finding;
  finding.grade = Grade::Note;
  finding.found += fmt::format(
      "; lease table and worker segment have {}, a worker started here "
      "does not lock them",
      cli::bytes_text(needed));
  finding.next = fmt::format("ulimit -l {}", (needed >> 10) + 1);
  return finding;
}

Finding huge_pages(const MachineFacts& facts) {
  Finding finding{.check = "huge pages", .found = "none reserved"};
  if (facts.reserved_huge_pages == 0) return finding;
  finding.grade = Grade::Note;
  finding.found =
      fmt::format("{} reserved pages are free; leases do not use them", facts.reserved_huge_pages);
  finding.next = "sysctl vm.nr_hugepages=0";
  return finding;
}

Finding memory_nodes(const MachineFacts& facts) {
  Finding finding{.check = "memory nodes", .found = "one"};
  if (!facts.nodes.problem.empty()) {
    finding.grade = Grade::Note;
    finding.found = "a worker uses this machine as one node, because its nodes cannot be read: " +
                    facts.nodes.problem;
    finding.next = fmt::format("grep . {0}/online {0}/has_memory {0}/node*/cpulist", kNumaRoot);
    return finding;
  }
  if (facts.nodes.nodes.size() < 2) return finding;
  finding.found = fmt::format("{}; threads of a worker by default:", facts.nodes.nodes.size());
  const auto spread = spread_threads(facts.nodes.nodes, facts.worker_threads);
  if (spread.empty()) finding.found += " all on one";
  for (const NodeThreads& node : spread)
    finding.found += fmt::format("{}{} on node {}", &node == &spread.front() ? " " : ", ",
                                 node.threads, node.id);
  return finding;
}

Finding users(const MachineFacts& facts) {
  Finding finding{.check = "users",
                  .found = "leasehold, leasehold-worker and leasehold-monitor exist"};
  const char* const missing = !facts.has_broker_user    ? "leasehold"
                              : !facts.has_worker_user  ? "leasehold-worker"
                              : !facts.has_monitor_user ? "leasehold-monitor"
                                                        : nullptr;
  if (missing == nullptr) return finding;
  finding.grade = facts.is_installed ? Grade::Wrong : Grade::Note;
  finding.found = fmt::format("user {} does not exist", missing);
  if (!facts.is_installed) finding.found += "; only the package needs it, a trial does not";
  finding.next =
      facts.is_installed ? "systemd-sysusers leasehold.conf" : "less tools/package/README.md";
  return finding;
}

Finding socket(const MachineFacts& facts) {
  Finding finding{.check = "socket", .found = facts.socket + " answers"};
  if (facts.socket_error.empty()) return finding;
  finding.grade = Grade::Wrong;
  finding.found = facts.socket_error;
  const bool is_unit = facts.is_installed && facts.socket.starts_with("/run/leasehold/");
  finding.next = !is_unit              ? "leasehold-broker --socket " + facts.socket
                 : facts.socket_exists ? "systemctl restart leasehold-broker.socket "
                                         "leasehold-broker || journalctl -u leasehold-broker -n 20"
                                       : "systemctl start leasehold-broker.socket";
  return finding;
}

/// After the next rotation the newest key has a key before it that vouches for it.
Finding audit_key(const MachineFacts& facts) {
  Finding finding{.check = "audit key", .found = "no key was lost"};
  if (!facts.audit) finding.found = "the broker answers nothing about an audit chain";
  if (!facts.audit || !facts.audit->key_is_unlinked) return finding;
  finding.grade = Grade::Wrong;
  finding.found =
      "it was lost, and a new one signs certificates; give auditors the new one in a way that they "
      "trust, then rotate it";
  finding.next = "brokerctl audit key && brokerctl audit key rotate";
  return finding;
}

/// Why the owner of the directory cannot write there, and a command that fixes it or shows more.
std::optional<std::pair<std::string, std::string>> write_obstacle(
    const std::string& path, const MachineFacts::Directory& state) {
  if ((state.mode & 0700) != 0700) return {{"its owner cannot write there", "chmod 0700 " + path}};
  if (state.is_read_only)
    return {{"its file system is read-only",
             fmt::format("mount -o remount,rw $(findmnt -n -o TARGET -T {})", path)}};
  if (!state.foreign_file.empty())
    return {{fmt::format("its owner cannot write {}", state.foreign_file),
             fmt::format("chown -R {} {} && chmod -R u+rw {}", state.owner, path, path)}};
  if (!state.has_free_files)
    return {{"its file system takes no other file", fmt::format("df -i {}", path)}};
  if (state.free_bytes < kReserveStepBytes)
    return {{cli::bytes_text(state.free_bytes) + " are free, so no lease is granted",
             fmt::format("df -h {}", path)}};
  return std::nullopt;
}

/// Checks the state directory, which holds the journal and the key of all tokens.
Finding state_directory(const MachineFacts& facts) {
  Finding finding{.check = "state directory", .found = facts.state_dir + " does not exist"};
  if (!facts.state && !facts.is_installed) return finding;
  finding.grade = Grade::Wrong;
  if (!facts.state) {
    finding.next = fmt::format("install -d -m 0700 -o leasehold -g leasehold {}", facts.state_dir);
    return finding;
  }
  finding.found = fmt::format("{} has mode {:04o} and owner {}", facts.state_dir, facts.state->mode,
                              facts.state->owner);
  if ((facts.state->mode & 077) != 0) {
    finding.found += "; other users can reach the key of all tokens";
    finding.next = "chmod 0700 " + facts.state_dir;
  } else if (facts.is_installed && facts.state->owner != "leasehold") {
    finding.found += "; the broker cannot write there";
    finding.next = "chown -R leasehold:leasehold " + facts.state_dir;
  } else if (const auto obstacle = write_obstacle(facts.state_dir, *facts.state)) {
    finding.found += "; " + obstacle->first;
    finding.next = obstacle->second;
  } else if (facts.state->free_bytes < kStateBytes) {
    finding.grade = Grade::Note;
    finding.found +=
        fmt::format("; {} are free, and the journal with its audit records may grow to {}",
                    cli::bytes_text(facts.state->free_bytes), cli::bytes_text(kStateBytes));
    finding.next = fmt::format("df -h {}", facts.state_dir);
  } else {
    finding.grade = Grade::Ok;
  }
  return finding;
}

Finding card(const MachineFacts& facts) {
  Finding finding{.check = "card", .found = "none; leases are of the machine's memory"};
  if (!facts.has_card_driver) return finding;
  finding.found = "driver and devices are there";
  if (facts.has_card_device) return finding;
  finding.grade = Grade::Wrong;
  finding.found = "the driver is loaded, but /dev/nvidiactl or /dev/nvidia0 does not exist";
  finding.next = "nvidia-modprobe -c 0 -u";
  return finding;
}

}  // namespace

std::vector<Finding> examine(const MachineFacts& facts) {
  return {kernel(facts),       memlock(facts),         huge_pages(facts),
          memory_nodes(facts), users(facts),           socket(facts),
          audit_key(facts),    state_directory(facts), card(facts)};
}

PrintText report(const std::vector<Finding>& findings) {
  cli::Table table{.columns = {{"CHECK"}, {"RESULT"}, {"FOUND"}, {"NEXT"}}};
  wire::Json items = wire::Json::array();
  for (const Finding& finding : findings) {
    table.rows.push_back({finding.check, std::string(name(finding.grade)), finding.found,
                          cli::or_dash(finding.next)});
    items.push_back({{"check", finding.check},
                     {"result", name(finding.grade)},
                     {"found", finding.found},
                     {"next", finding.next}});
  }
  const bool is_wrong =
      std::ranges::any_of(findings, [](const Finding& it) { return it.grade == Grade::Wrong; });
  return {.text = cli::render(table),
          .json = cli::json_text(wire::Json{{"items", std::move(items)}}, 2) + '\n',
          .exit_code = is_wrong ? kExitWrong : kExitOk};
}

}  // namespace leasehold::brokerctl
