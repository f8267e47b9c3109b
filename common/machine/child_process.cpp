#include "common/machine/child_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "common/machine/process.hpp"

namespace leasehold {
namespace {

struct Plumbing {
  UniqueFd log;
  UniqueFd null;
  /// The program file, opened as this user, for a child that runs as another user.
  UniqueFd program;
  UniqueFd read_end, write_end;  ///< The pipe of the child's stdout.
};

Result<UniqueFd> open_file(const char* path, int flags) {
  const int fd = ::open(path, flags | O_CLOEXEC, 0600);
  if (fd < 0) return fail_errno(Errc::SystemError, fmt::format("open {}", path), errno);
  return UniqueFd(fd);
}

Result<Plumbing> lay_pipes(const ChildConfig& config) {
  Plumbing plumbing;
  plumbing.log = TRY(open_file(config.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND));
  plumbing.null = TRY(open_file("/dev/null", O_RDONLY));
  if (config.uid) plumbing.program = TRY(open_file(config.argv[0].c_str(), O_PATH));
  if (!config.read_output) return plumbing;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0) return fail_errno(Errc::SystemError, "pipe2", errno);
  plumbing.read_end.reset(ends[0]);
  plumbing.write_end.reset(ends[1]);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return plumbing;
}

constexpr int kFirstHandedOver = 3;
constexpr std::string_view kListenPid = "LISTEN_PID=";
constexpr std::size_t kPidDigits = 20;

/// Everything the child needs, prepared before the fork: nothing is allocated between fork and
/// exec.
struct ExecImage {
  std::vector<char*> argv;
  std::vector<std::string> words;  ///< Entries of `envp` that this process's environment lacks.
  std::vector<char*> envp;
  /// Points to the place for the pid's digits; null without inherited descriptors.
  char* listen_pid = nullptr;
  std::vector<int> fds;
  bool own_group;
  std::optional<uid_t> uid;
  std::optional<int> nice;

  explicit ExecImage(const ChildConfig& config);
};

bool overrides(const std::vector<std::string>& words, std::string_view entry) {
  const std::string_view name = entry.substr(0, entry.find('=') + 1);
  return std::ranges::any_of(words, [&](const auto& word) { return word.starts_with(name); });
}

std::vector<std::string> environment_of(const ChildConfig& config) {
  std::vector<std::string> words = config.environment;
  if (config.inherited_fds.empty()) return words;
  std::string names;
  for (const InheritedFd& each : config.inherited_fds) names += ":" + each.name;
  // A name that occurs twice has one value or the other, depending on the C library.
  const auto add = [&words](std::string word) {
    if (!overrides(words, word)) words.push_back(std::move(word));
  };
  add(fmt::format("LISTEN_FDS={}", config.inherited_fds.size()));
  add("LISTEN_FDNAMES=" + names.substr(1));
  words.push_back(std::string(kListenPid) + std::string(kPidDigits, '\0'));
  return words;
}

ExecImage::ExecImage(const ChildConfig& config)
    : words(environment_of(config)),
      own_group(!config.share_process_group),
      uid(config.uid),
      nice(config.nice) {
  for (const std::string& word : config.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!overrides(words, *entry)) envp.push_back(*entry);
  }
  for (std::string& word : words) envp.push_back(word.data());
  envp.push_back(nullptr);
  for (const InheritedFd& each : config.inherited_fds) fds.push_back(each.fd);
  if (!fds.empty()) listen_pid = words.back().data() + kListenPid.size();
}

/// Gives the inherited descriptors their numbers, from 3 in order. Moves all of them above these
/// numbers first, because one may have the number that another one gets. Returns false on failure:
/// the child could otherwise use a wrong descriptor.
bool place_descriptors(std::vector<int>& fds) {
  const int beyond = kFirstHandedOver + static_cast<int>(fds.size());
  for (int& fd : fds) {
    fd = ::fcntl(fd, F_DUPFD_CLOEXEC, beyond);
    if (fd < 0) return false;
  }
  for (std::size_t i = 0; i < fds.size(); ++i) {
    if (::dup2(fds[i], kFirstHandedOver + static_cast<int>(i)) < 0) return false;
  }
  return true;
}

bool become(uid_t uid) {
  return ::setgroups(0, nullptr) == 0 && ::setgid(uid) == 0 && ::setuid(uid) == 0;
}

/// Runs between fork and exec, so it makes only async-signal-safe calls.
[[noreturn]] void exec_child(ExecImage& child, const Plumbing& plumbing, pid_t parent) {
  if (child.nice) (void)::setpriority(PRIO_PROCESS, 0, *child.nice);
  if (child.uid && !become(*child.uid)) ::_exit(127);
  // Set after the change of the user, which resets the signal.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // The owner died before the line above.
  if (child.own_group) ::setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(plumbing.null.get(), STDIN_FILENO);
  ::dup2(plumbing.write_end ? plumbing.write_end.get() : plumbing.log.get(), STDOUT_FILENO);
  ::dup2(plumbing.log.get(), STDERR_FILENO);
  const int beyond = kFirstHandedOver + static_cast<int>(child.fds.size());
  const int program = ::fcntl(plumbing.program.get(), F_DUPFD_CLOEXEC, beyond);
  if (!place_descriptors(child.fds)) ::_exit(127);
  if (child.listen_pid != nullptr) {
    std::to_chars(child.listen_pid, child.listen_pid + kPidDigits, ::getpid());
  }
  if (child.uid) {  // the other user may be unable to reach the program by its path
    ::syscall(SYS_execveat, program, "", child.argv.data(), child.envp.data(), AT_EMPTY_PATH);
  } else {
    ::execve(child.argv[0], child.argv.data(), child.envp.data());
  }
  ::_exit(127);
}

/// Ends a child that no Child owns.
void kill_and_reap(pid_t pid) {
  (void)::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

Result<Child> Child::start(const ChildConfig& config) {
  if (::access(config.argv[0].c_str(), X_OK) < 0) {
    return fail(Errc::FileNotFound,
                fmt::format("no program {}; build it, or give --bin-dir", config.argv[0]));
  }
  Plumbing plumbing = TRY(lay_pipes(config));
  ExecImage child(config);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno(Errc::SystemError, "fork", errno);
  if (pid == 0) exec_child(child, plumbing, parent);
  // The child is not reaped yet, so the pid is still its own.
  Result<UniqueFd> pidfd = open_pidfd(pid);
  if (!pidfd) {
    kill_and_reap(pid);
    return std::unexpected(std::move(pidfd).error());
  }
  return Child(pid, *std::move(pidfd), std::move(plumbing.read_end));
}

Child::~Child() {
  if (!pidfd_ || status_) return;
  (void)signal(SIGKILL);
  (void)reap(0);
}

Result<void> Child::signal(int signal_number) {
  return signal_pidfd(pidfd_, signal_number);
}

std::optional<int> Child::status() {
  return status_ ? status_ : reap(WNOHANG);
}

std::optional<int> Child::reap(int options) {
  const auto id = static_cast<id_t>(pidfd_.get());
  siginfo_t info{};
  int rc = 0;
  do {
    rc = ::waitid(P_PIDFD, id, &info, WEXITED | WNOWAIT | options);
  } while (rc < 0 && errno == EINTR);
  if (rc < 0 || info.si_pid == 0) return std::nullopt;
  // The pid names the child's group until the child is reaped. A child that shares this process's
  // group has no group of its own, and the kill does nothing.
  (void)::kill(-pid_, SIGKILL);
  (void)::waitid(P_PIDFD, id, &info, WEXITED | WNOHANG);
  status_ = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
  return status_;
}

}  // namespace leasehold
