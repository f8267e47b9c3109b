#include "common/machine/text_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/machine/unique_fd.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kPartBytes = 64 << 10;

/// Reads to the end instead of trusting the size that stat reports: files grow, and some report 0.
Result<std::string> read_to_the_end(int fd, const std::string& what, std::size_t max_bytes) {
  std::string text;
  std::string part(kPartBytes, '\0');
  while (true) {
    const ssize_t size = ::read(fd, part.data(), part.size());
    if (size == 0) return text;
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_file("read " + what, errno);
    text.append(part, 0, static_cast<std::size_t>(size));
    if (text.size() > max_bytes)
      return fail(Errc::MessageTooLarge,
                  fmt::format("{} is longer than {} bytes", what, max_bytes));
  }
}

struct OpenFile {
  UniqueFd fd;
  struct stat status{};
};

Result<OpenFile> open_regular(const std::string& path) {
  // O_NONBLOCK: opening a FIFO by mistake must not wait for a writer.
  OpenFile file{.fd = UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY))};
  if (!file.fd) return fail_file("open " + path, errno);
  if (::fstat(file.fd.get(), &file.status) != 0) return fail_file("stat " + path, errno);
  if (!S_ISREG(file.status.st_mode)) return fail(Errc::BadRequest, path + " is not a regular file");
  return file;
}

Result<void> check_trusted(const struct stat& status, const std::string& path) {
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return fail(Errc::PermissionDenied,
                fmt::format("{} belongs to user {}; it must belong to root or to user {}", path,
                            status.st_uid, ::geteuid()));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return fail(Errc::PermissionDenied,
              fmt::format("other users can write to {} (mode {:04o}); run chmod go-w {}", path,
                          status.st_mode & 07777, path));
}

}  // namespace

Result<std::string> read_text_file(const std::string& path, std::size_t max_bytes) {
  const OpenFile file = TRY(open_regular(path));
  return read_to_the_end(file.fd.get(), path, max_bytes);
}

Result<std::string> read_trusted_file(const std::string& path, std::size_t max_bytes) {
  const OpenFile file = TRY(open_regular(path));
  TRY(check_trusted(file.status, path));
  return read_to_the_end(file.fd.get(), path, max_bytes);
}

Result<std::string> read_text_stdin(std::size_t max_bytes) {
  return read_to_the_end(STDIN_FILENO, "stdin", max_bytes);
}

}  // namespace leasehold
