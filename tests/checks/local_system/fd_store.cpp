#include "tests/checks/local_system/fd_store.hpp"

#include <linux/kcmp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace leasehold {
namespace {

constexpr std::size_t kMaxDescriptors = 253;  // SCM_MAX_FD
constexpr int kPollInterval_ms = 20;

UniqueFd bind_datagrams(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    throw std::runtime_error("bind " + path);
  }
  return fd;
}

struct Datagram {
  std::string text;
  std::vector<UniqueFd> fds;
};

std::optional<Datagram> receive(int socket) {
  std::array<char, 4096> bytes;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control;
  iovec part{bytes.data(), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  if (size < 0) return std::nullopt;
  Datagram datagram{.text = {bytes.data(), static_cast<std::size_t>(size)}, .fds = {}};
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    std::vector<int> numbers((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(numbers.data(), CMSG_DATA(c), numbers.size() * sizeof(int));
    for (const int number : numbers) datagram.fds.emplace_back(number);
  }
  return datagram;
}

/// systemd also stores an open file description only once.
bool same_file(const UniqueFd& a, const UniqueFd& b) {
  return ::syscall(SYS_kcmp, ::getpid(), ::getpid(), KCMP_FILE, a.get(), b.get()) == 0;
}

}  // namespace

FdStore::FdStore() : socket_(bind_datagrams(path_)) {
  collector_ = std::jthread([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd entry{socket_.get(), POLLIN, 0};
      ::poll(&entry, 1, kPollInterval_ms);
      collect();
    }
  });
}

FdStore::~FdStore() {
  collector_.request_stop();
  collector_.join();
}

Result<Child> FdStore::start(ChildConfig config) {
  collect();
  const std::scoped_lock lock(mutex_);
  ready_ = false;
  config.environment.push_back("NOTIFY_SOCKET=" + path_);
  for (const Entry& entry : entries_) config.inherited_fds.push_back({entry.name, entry.fd.get()});
  return Child::start(config);
}

std::vector<std::string> FdStore::names() {
  collect();
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.name);
  return names;
}

void FdStore::drop_all() {
  collect();
  const std::scoped_lock lock(mutex_);
  entries_.clear();
}

void FdStore::put(const std::string& name, UniqueFd fd) {
  const std::scoped_lock lock(mutex_);
  entries_.push_back({name, std::move(fd)});
}

bool FdStore::is_ready() {
  collect();
  const std::scoped_lock lock(mutex_);
  return ready_;
}

void FdStore::collect() {
  const std::scoped_lock lock(mutex_);
  while (auto datagram = receive(socket_.get())) take(datagram->text, std::move(datagram->fds));
}

void FdStore::take(const std::string& message, std::vector<UniqueFd> fds) {
  std::string name = "stored";
  bool stores = false;
  bool removes = false;
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("FDNAME=")) name = line.substr(7);
    stores |= line == "FDSTORE=1";
    removes |= line == "FDSTOREREMOVE=1";
    ready_ |= line == "READY=1";
  }
  if (removes) std::erase_if(entries_, [&](const Entry& entry) { return entry.name == name; });
  if (!stores) return;
  for (UniqueFd& fd : fds) keep(name, std::move(fd));
}

void FdStore::keep(const std::string& name, UniqueFd fd) {
  const bool known =
      std::ranges::any_of(entries_, [&](const Entry& entry) { return same_file(entry.fd, fd); });
  if (!known) entries_.push_back({name, std::move(fd)});
}

}  // namespace leasehold
