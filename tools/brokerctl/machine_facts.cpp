#include "tools/brokerctl/machine_facts.hpp"

#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "ipc/client/parse_message.hpp"
#include "ipc/control/messages.hpp"
#include "ipc/control/transport/client.hpp"
#include "kernels/cpu/default_threads.hpp"

namespace leasehold::brokerctl {
namespace {

constexpr Duration kAnswerTimeout = std::chrono::seconds(2);

std::uint64_t free_huge_pages() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  std::uint64_t pages = 0;
  while (file >> word)
    if (word == "HugePages_Free:") file >> pages;
  return pages;
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

/// Returns the first file that `owner` cannot write. Looks only at files that the broker writes,
/// because a copy beside them may be read-only. Finds no file in a directory that this user cannot
/// search.
std::string file_not_writable_by(uid_t owner, const std::string& directory) {
  for (const char* name : {"journal.db", "journal.db-wal", "journal.db-shm", "journal.reserve",
                           "high_water_marks", "audit_head", "audit-key", "token.key"}) {
    const std::string path = directory + '/' + name;
    struct stat found{};
    if (::lstat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) continue;
    const bool is_writable = found.st_uid == owner && (found.st_mode & S_IWUSR) != 0;
    if (!is_writable) return path;
  }
  return {};
}

std::optional<MachineFacts::Directory> directory_at(const std::string& path) {
  struct stat found{};
  struct statvfs disk{};
  if (::stat(path.c_str(), &found) != 0 || ::statvfs(path.c_str(), &disk) != 0) return std::nullopt;
  const passwd* const owner = ::getpwuid(found.st_uid);
  return MachineFacts::Directory{
      .mode = found.st_mode & 07777,
      .owner = owner == nullptr ? std::to_string(found.st_uid) : std::string(owner->pw_name),
      .free_bytes = std::uint64_t{disk.f_bavail} * disk.f_frsize,
      .has_free_files = disk.f_files == 0 || disk.f_favail > 0,  // f_files is 0 without a limit
      .is_read_only = (disk.f_flag & ST_RDONLY) != 0,
      .foreign_file = file_not_writable_by(found.st_uid, path)};
}

std::uint64_t memlock_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return 0;
  return limit.rlim_cur == RLIM_INFINITY ? std::numeric_limits<std::uint64_t>::max()
                                         : limit.rlim_cur;
}

/// Systemd accepts connections for a broker that does not run, so only a reply proves that the
/// broker runs. A refusal is a reply, too.
void ask_broker(MachineFacts& facts) {
  auto client = control::Client::connect(facts.socket);
  if (!client) {
    facts.socket_error = client.error().detail;
    return;
  }
  const auto reply = client->call("status", {.body = wire::Empty{}.to_json()}, kAnswerTimeout);
  if (reply) {
    const auto status = client::parse_message<wire::StatusOfAudit>(reply->body);
    if (status) facts.audit = status->audit;
    return;
  }
  const Error& error = reply.error();
  if (error.code != Errc::TimedOut && error.code != Errc::ConnectionLost) return;
  facts.socket_error =
      fmt::format("{} accepts connections, but no broker answers: {}", facts.socket, error.detail);
}

}  // namespace

MachineFacts read_machine(const std::string& socket, const std::string& state_dir) {
  MachineFacts facts{.memlock_bytes = memlock_limit(),
                     .may_lock_more = ::geteuid() == 0,
                     .reserved_huge_pages = free_huge_pages(),
                     .nodes = read_numa_nodes(CpuSet::of_this_thread()),
                     .worker_threads = default_threads(usable_cpu()),
                     .is_installed = exists("/lib/systemd/system/leasehold-broker.service") ||
                                     exists("/etc/systemd/system/leasehold-broker.service"),
                     .has_broker_user = ::getpwnam("leasehold") != nullptr,
                     .has_worker_user = ::getpwnam("leasehold-worker") != nullptr,
                     .has_monitor_user = ::getpwnam("leasehold-monitor") != nullptr,
                     .socket = socket,
                     .socket_exists = exists(socket),
                     .state_dir = state_dir,
                     .state = directory_at(state_dir),
                     .has_card_driver = exists("/proc/driver/nvidia/version"),
                     .has_card_device = exists("/dev/nvidiactl") && exists("/dev/nvidia0")};
  utsname kernel{};
  if (::uname(&kernel) == 0) facts.kernel_release = kernel.release;
  ask_broker(facts);
  return facts;
}

}  // namespace leasehold::brokerctl
