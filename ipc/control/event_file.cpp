#include "ipc/control/event_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

namespace leasehold::events {

namespace {

/// Opens the log non-blocking, so that a pipe without a reader delays neither the opening nor a
/// write. The flag applies to this open file description only; others of the same pipe, such as
/// stderr, keep theirs.
Result<UniqueFd> open_log(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600);
  if (fd < 0 && errno == ENXIO) {
    return fail(Errc::BadRequest, fmt::format("{} is a pipe that no process reads, or a socket; "
                                              "start its reader first, or name a file",
                                              path));
  }
  if (fd < 0) return fail_file("open " + path, errno);
  return UniqueFd(fd);
}

Result<struct stat> status_of(const UniqueFd& fd) {
  struct stat now{};
  if (::fstat(fd.get(), &now) != 0) return fail_file("read the size of the event log", errno);
  return now;
}

Result<bool> is_regular(const UniqueFd& fd) {
  return S_ISREG(TRY(status_of(fd)).st_mode);
}

Result<std::uint64_t> regular_bytes(const UniqueFd& fd) {
  const struct stat now = TRY(status_of(fd));
  return S_ISREG(now.st_mode) ? static_cast<std::uint64_t>(now.st_size) : 0;
}

/// True for a symbolic link, such as /dev/stderr, which may lead to a file that is not this log.
bool is_link(const std::string& path) {
  struct stat named{};
  return ::lstat(path.c_str(), &named) == 0 && S_ISLNK(named.st_mode);
}

/// Returns how many bytes were written; 0 for a pipe or terminal that is full.
Result<std::size_t> write_some(const UniqueFd& fd, std::string_view text) {
  ssize_t written = 0;
  do {
    written = ::write(fd.get(), text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written >= 0) return static_cast<std::size_t>(written);
  if (errno == EAGAIN) return 0;
  return fail_file("write to the event log", errno);
}

std::unexpected<Error> reader_is_slow() {
  return fail(Errc::DiskFull, "the process that reads the event log does not read");
}

}  // namespace

Result<EventFile> EventFile::open(const std::string& path, std::uint64_t max_bytes) {
  return EventFile(TRY(open_log(path)), path, max_bytes);
}

Result<std::uint64_t> EventFile::append(const Event& event, TimePoint at) {
  if (lost_ > 0 && at < retry_at_) {
    ++lost_;
    return 0;
  }
  if (auto written = write_line(to_json(event, at).dump() + '\n'); !written) {
    ++lost_;
    retry_at_ = at + kRetryInterval;
    return std::unexpected(std::move(written).error());
  }
  return std::exchange(lost_, 0);
}

/// Removes a line that was written in part from a file, so that a later line can follow. In a pipe,
/// the rest of such a line is written before the next line.
Result<void> EventFile::write_line(const std::string& line) {
  std::uint64_t size_bytes = TRY(regular_bytes(fd_));
  if (size_bytes > 0 && size_bytes + line.size() > max_bytes_ && !is_link(path_)) {
    TRY(rotate());
    size_bytes = TRY(regular_bytes(fd_));
  }
  rest_.erase(0, TRY(write_some(fd_, rest_)));
  if (!rest_.empty()) return reader_is_slow();
  const std::size_t written = TRY(write_some(fd_, line));
  if (written == line.size()) return {};
  if (!TRY(is_regular(fd_))) {
    if (written == 0) return reader_is_slow();
    rest_ = line.substr(written);
    return {};
  }
  if (::ftruncate(fd_.get(), static_cast<off_t>(size_bytes)) != 0)
    return fail_file("remove an incomplete line from the event log", errno);
  return fail(Errc::DiskFull,
              fmt::format("wrote only {} of {} bytes to the event log; free disk space", written,
                          line.size()));
}

/// A missing file counts as renamed: the last call may have renamed it and failed to open a new
/// one.
Result<void> EventFile::rotate() {
  const std::string previous = path_ + ".1";
  if (::rename(path_.c_str(), previous.c_str()) != 0 && errno != ENOENT)
    return fail_file(fmt::format("rename {} to {}", path_, previous), errno);
  fd_ = TRY(open_log(path_));
  return {};
}

Result<std::vector<StampedEvent>> read_event_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail(Errc::FileNotFound, "there is no event log " + path);
  std::vector<StampedEvent> all;
  std::string line;
  while (std::getline(file, line) && !file.eof()) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    auto event = from_json(json);
    if (!event) {
      return fail(Errc::BadRequest, fmt::format("{}:{} does not hold an event: {}", path,
                                                all.size() + 1, event.error().detail));
    }
    all.push_back(*std::move(event));
  }
  return all;
}

}  // namespace leasehold::events
