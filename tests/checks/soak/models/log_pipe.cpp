#include "tests/checks/soak/models/log_pipe.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace leasehold::soak {
namespace {

constexpr int kPipeBytes = 4096;

}  // namespace

Result<LogPipe> LogPipe::create(std::string path) {
  const auto failed = [&path](const char* what) {
    return fail(Errc::SystemError, fmt::format("{} {}: {}", what, path, std::strerror(errno)));
  };
  if (::mkfifo(path.c_str(), 0600) != 0) return failed("making the pipe");
  UniqueFd end(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!end) return failed("opening the pipe");
  if (::fcntl(end.get(), F_SETPIPE_SZ, kPipeBytes) < 0) return failed("sizing the pipe");
  UniqueFd copy(::open((path + ".read").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!copy) return failed("opening the copy of");
  return LogPipe(std::move(path), std::move(end), std::move(copy));
}

void LogPipe::read() {
  if (is_stopped()) return;
  std::array<char, kPipeBytes> buffer;
  for (;;) {
    const ssize_t got = ::read(end_.get(), buffer.data(), buffer.size());
    if (got <= 0) return;
    (void)!::write(copy_.get(), buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace leasehold::soak
