#include "ipc/control/event_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>

namespace leasehold::events {

Result<EventFile> EventFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return fail_file("open " + path, errno);
  return EventFile(UniqueFd(fd));
}

Result<void> EventFile::append(const Event& event, TimePoint at) {
  const std::string line = to_json(event, at).dump() + '\n';
  ssize_t written = 0;
  do {
    written = ::write(fd_.get(), line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return fail_file("write to the event log", errno);
  if (static_cast<std::size_t>(written) == line.size()) return {};
  return fail(Errc::DiskFull,
              fmt::format("wrote only {} of {} bytes to the event log; free disk space", written,
                          line.size()));
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
