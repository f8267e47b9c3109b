#include "tests/process/security/attacks.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <sstream>

#include "common/machine/process.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kPage = 4096;

int error_of(long result) {
  return result == -1 ? errno : 0;
}

int map_writable(int fd, std::size_t size_bytes) {
  void* at = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return errno;
  ::munmap(at, size_bytes);
  return 0;
}

/// Maps the table read-only, as a worker may, then tries an operation that needs write access.
template <class Action>
int with_read_only_map(const Target& target, Action action) {
  void* at = ::mmap(nullptr, target.size_bytes, PROT_READ, MAP_SHARED, target.table, 0);
  if (at == MAP_FAILED) return errno;
  const int error = error_of(action(at));
  ::munmap(at, target.size_bytes);
  return error;
}

int open_for_writing(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  return fd ? 0 : errno;
}

/// Finds the table among the broker's own descriptors.
int open_brokers_descriptors(pid_t broker) {
  const std::string folder = fmt::format("/proc/{}/fd", broker);
  DIR* listing = ::opendir(folder.c_str());
  if (listing == nullptr) return errno;
  int error = ENOENT;
  while (const dirent* entry = ::readdir(listing)) {
    std::array<char, 256> to{};
    const std::string path = folder + "/" + entry->d_name;
    if (::readlink(path.c_str(), to.data(), to.size() - 1) < 0) continue;
    if (std::string(to.data()).find("leasehold-table") == std::string::npos) continue;
    error = open_for_writing(path);
  }
  ::closedir(listing);
  return error;
}

int steal_descriptor(pid_t broker) {
  auto pidfd = open_pidfd(broker);
  if (!pidfd) return ESRCH;
  for (int number = 3; number < 64; ++number) {
    const UniqueFd stolen(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd->get(), number, 0)));
    if (stolen && map_writable(stolen.get(), kPage) == 0) return 0;
    if (!stolen && errno != EBADF) return errno;
  }
  return ENOENT;
}

int write_into_broker(pid_t broker) {
  char byte = 0;
  const iovec local{&byte, 1};
  const iovec remote{std::bit_cast<void*>(std::uintptr_t{kPage}), 1};
  const int error = error_of(::process_vm_writev(broker, &local, 1, &remote, 1, 0));
  return error == EFAULT ? 0 : error;  // EFAULT: permitted, only the address is invalid
}

int trace(pid_t broker) {
  if (::ptrace(PTRACE_SEIZE, broker, nullptr, nullptr) == -1) return errno;
  ::ptrace(PTRACE_DETACH, broker, nullptr, nullptr);
  return 0;
}

}  // namespace

UniqueFd reopen_for_writing(int table) {
  ::fchmod(table, 0600);
  return UniqueFd(::open(fmt::format("/proc/self/fd/{}", table).c_str(), O_RDWR | O_CLOEXEC));
}

std::map<std::string, int> attack(const Target& target) {
  const int fd = target.table;
  const char byte = 0;
  const auto size = static_cast<off_t>(target.size_bytes);
  const std::string own = fmt::format("/proc/self/fd/{}", fd);
  return {
      {"mmap writable", map_writable(fd, target.size_bytes)},
      {"mprotect",
       with_read_only_map(target, [&](void* at) { return ::mprotect(at, kPage, PROT_WRITE); })},
      {"madvise remove",
       with_read_only_map(target, [&](void* at) { return ::madvise(at, kPage, MADV_REMOVE); })},
      {"write", error_of(::write(fd, &byte, 1))},
      {"pwrite", error_of(::pwrite(fd, &byte, 1, 0))},
      {"ftruncate shorter", error_of(::ftruncate(fd, 0))},
      {"ftruncate longer", error_of(::ftruncate(fd, size * 2))},
      {"fallocate punch",
       error_of(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kPage))},
      {"seal against writing", error_of(::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE))},
      {"fcntl to writable", (::fcntl(fd, F_SETFL, O_RDWR), map_writable(fd, target.size_bytes))},
      {"reopen own descriptor", open_for_writing(own)},
      {"truncate by path", error_of(::truncate(own.c_str(), 0))},
      {"fchmod", error_of(::fchmod(fd, 0600))},
      {"fchmod, then reopen", reopen_for_writing(fd) ? 0 : EACCES},
      {"open the broker's descriptors", open_brokers_descriptors(target.broker)},
      {"pidfd_getfd", steal_descriptor(target.broker)},
      {"open the broker's memory", open_for_writing(fmt::format("/proc/{}/mem", target.broker))},
      {"process_vm_writev", write_into_broker(target.broker)},
      {"ptrace", trace(target.broker)},
  };
}

std::string to_text(const std::map<std::string, int>& outcomes) {
  std::string text;
  for (const auto& [name, error] : outcomes) text += fmt::format("{} {}\n", error, name);
  return text;
}

std::map<std::string, int> outcomes_from_text(const std::string& text) {
  std::map<std::string, int> outcomes;
  std::istringstream lines(text);
  int error = 0;
  for (std::string name; lines >> error && std::getline(lines >> std::ws, name);) {
    outcomes[name] = error;
  }
  return outcomes;
}

}  // namespace leasehold
