#include "tests/support/fake_cuda/card_memory.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/fake_cuda/entry.hpp"

namespace leasehold::fake_cuda {
namespace {

constexpr int kGarbage = 0xAB;
constexpr const char* kPrefix = "leasehold-fake-cuda-";

const std::string& state_directory() {
  static const std::string directory = [] {
    const char* const text = std::getenv("FAKE_CUDA_STATE");
    return std::string(text == nullptr ? "" : text);
  }();
  return directory;
}

std::size_t size_of(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0;
}

/// Probes with an open file description of its own, so the lock of any other description conflicts.
bool is_held(int probe) {
  if (::flock(probe, LOCK_EX | LOCK_NB) != 0) return true;
  ::flock(probe, LOCK_UN);
  return false;
}

/// One process at a time counts and allocates. The kernel releases the lock if the process dies.
class AccountingLock {
 public:
  explicit AccountingLock() : within_(mutex()) {
    if (state_directory().empty()) return;
    ::mkdir(state_directory().c_str(), 0700);
    fd_ =
        UniqueFd(::open((state_directory() + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ::flock(fd_.get(), LOCK_EX);
  }

 private:
  static std::mutex& mutex() {
    static auto& one = *new std::mutex;
    return one;
  }
  std::scoped_lock<std::mutex> within_;
  UniqueFd fd_;
};

/// Open file descriptions for probing, one per memfd of this process.
std::vector<UniqueFd>& probes() {
  static auto& all = *new std::vector<UniqueFd>;
  return all;
}

std::size_t used_of_this_process() {
  std::erase_if(probes(), [](const UniqueFd& probe) { return !is_held(probe.get()); });
  std::size_t used = 0;
  for (const UniqueFd& probe : probes()) used += size_of(probe.get());
  return used;
}

/// Also deletes files that no process holds any more.
std::size_t used_of_directory() {
  DIR* const directory = ::opendir(state_directory().c_str());
  if (directory == nullptr) return 0;
  std::size_t used = 0;
  while (const dirent* const entry = ::readdir(directory)) {
    if (std::strncmp(entry->d_name, kPrefix, std::strlen(kPrefix)) != 0) continue;
    const std::string path = state_directory() + "/" + entry->d_name;
    const UniqueFd probe(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (is_held(probe.get()))
      used += size_of(probe.get());
    else
      ::unlink(path.c_str());
  }
  ::closedir(directory);
  return used;
}

std::size_t used_now() {
  return state_directory().empty() ? used_of_this_process() : used_of_directory();
}

UniqueFd create_file() {
  static unsigned made = 0;
  const std::string name = kPrefix + std::to_string(::getpid()) + "-" + std::to_string(++made);
  if (!state_directory().empty()) {
    return UniqueFd(::open((state_directory() + "/" + name).c_str(),
                           O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  }
  UniqueFd fd(::memfd_create(name.c_str(), MFD_CLOEXEC));
  const std::string again = "/proc/self/fd/" + std::to_string(fd.get());
  probes().emplace_back(::open(again.c_str(), O_RDWR | O_CLOEXEC));
  return fd;
}

bool fill(int fd, std::size_t size_bytes) {
  void* const at = ::mmap(nullptr, size_bytes, PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return false;
  std::memset(at, kGarbage, size_bytes);
  ::munmap(at, size_bytes);
  return true;
}

}  // namespace

NewMemory allocate(std::size_t size_bytes) {
  UniqueFd fd;
  {
    const AccountingLock lock;
    const std::size_t capacity = card().memory_bytes;
    if (size_bytes > capacity || used_now() > capacity - size_bytes)
      return {.result = CUDA_ERROR_OUT_OF_MEMORY, .fd = {}};
    fd = create_file();
    ::flock(fd.get(), LOCK_SH);
    if (::ftruncate(fd.get(), static_cast<off_t>(size_bytes)) != 0)
      return {.result = CUDA_ERROR_UNKNOWN, .fd = {}};
  }
  if (!fill(fd.get(), size_bytes)) return {.result = CUDA_ERROR_UNKNOWN, .fd = {}};
  return {.result = CUDA_SUCCESS, .fd = std::move(fd)};
}

std::size_t used_bytes() {
  const AccountingLock lock;
  return used_now();
}

bool is_card_memory(int fd) {
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size() - 1);
  return length > 0 && std::string_view(path.data()).find(kPrefix) != std::string_view::npos;
}

}  // namespace leasehold::fake_cuda
