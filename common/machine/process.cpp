#include "common/machine/process.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <sstream>

namespace leasehold {
namespace {

/// The first version of the kernel's sched_attr. The kernel's header conflicts with libc's sched.h.
/// Source: sched_setattr(2).
struct SchedulingAttributes {
  std::uint32_t size_bytes;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime_ns;  ///< The time slice of an ordinary thread.
  std::uint64_t deadline_ns;
  std::uint64_t period_ns;
};
static_assert(sizeof(SchedulingAttributes) == 48);

}  // namespace

Result<UniqueFd> open_pidfd(pid_t pid) {
  const long fd = ::syscall(SYS_pidfd_open, pid, 0);
  if (fd < 0) {
    const Errc code = errno == ESRCH ? Errc::ConnectionLost : Errc::SystemError;
    return fail_errno(code, fmt::format("pidfd_open({})", pid), errno);
  }
  return UniqueFd(static_cast<int>(fd));
}

Result<void> signal_pidfd(const UniqueFd& pidfd, int signal_number) {
  const long rc = ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal_number, nullptr, 0);
  if (rc < 0 && errno != ESRCH) {
    return fail_errno(Errc::SystemError, "pidfd_send_signal", errno);
  }
  return {};
}

bool has_exited(const UniqueFd& pidfd) {
  pollfd entry{pidfd.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1 && (entry.revents & POLLIN) != 0;
}

Result<std::uint64_t> start_ticks_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::size_t name_end = text.rfind(')');  // the name itself may hold anything
  if (name_end == std::string::npos) {
    return fail(Errc::ConnectionLost, fmt::format("there is no process {}", pid));
  }
  constexpr int kFieldsBetween = 19;  // from the state, field 3, to the start time, field 22
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  std::uint64_t ticks = 0;
  if (!(fields >> ticks)) return fail(Errc::SystemError, fmt::format("/proc/{}/stat", pid));
  return ticks;
}

Result<UniqueFd> open_pidfd(const ProcessIdentity& process) {
  const auto pid = static_cast<pid_t>(process.pid);
  UniqueFd pidfd = TRY(open_pidfd(pid));
  const auto ticks = start_ticks_of(pid);  // read after the pidfd was opened, so the pid is valid
  const bool another = ticks && process.start_ticks != 0 && *ticks != process.start_ticks;
  if (has_exited(pidfd) || another) {
    return fail(Errc::ConnectionLost,
                fmt::format("process {} has exited and its pid was reused", pid));
  }
  if (!ticks || process.start_ticks == 0) {  // hidden in /proc: it may still run
    return fail(Errc::SystemError, fmt::format("cannot read the start time of process {}", pid));
  }
  return pidfd;
}

Result<std::string> boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  if (!(file >> id)) return fail(Errc::SystemError, "/proc/sys/kernel/random/boot_id");
  return id;
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);  // best effort: with the old limit fewer extents fit
}

std::uint64_t descriptor_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

void request_short_time_slice(std::chrono::microseconds time_slice) {
  SchedulingAttributes attributes{};
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  attributes.runtime_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(time_slice).count());
  (void)::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void set_thread_name(const char* name) {
  (void)::prctl(PR_SET_NAME, name);
}

bool is_real_time_process() {
  const int policy = ::sched_getscheduler(::getpid()) & ~SCHED_RESET_ON_FORK;
  return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

void use_batch_scheduling() {
  constexpr int kNice = 5;  // about a third of the share of a thread with nice 0
  const sched_param ordinary{};
  (void)::sched_setscheduler(0, SCHED_BATCH, &ordinary);
  (void)!::nice(kNice);  // on Linux nice is per thread: sched(7)
}

void give_way() {
  (void)::sched_yield();
}

void set_not_dumpable() {
#if !defined(__SANITIZE_ADDRESS__)  // the leak checker traces its own process
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

}  // namespace leasehold
