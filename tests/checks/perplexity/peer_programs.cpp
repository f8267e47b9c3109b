#include "tests/checks/perplexity/peer_programs.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "common/machine/text_file.hpp"

namespace leasehold {
namespace {

constexpr Duration kLongestRun = std::chrono::minutes(10);
constexpr int kPollMs = 100;
constexpr std::size_t kMaxLogBytes = 1 << 20;
constexpr std::string_view kVersion = "version: ";

void read_available(const UniqueFd& fd, std::string& text) {
  std::array<char, 4096> part;
  for (ssize_t got = 0; (got = ::read(fd.get(), part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(got));
}

}  // namespace

Result<PeerPrograms> PeerPrograms::open(const std::string& directory,
                                        const std::vector<std::string>& programs) {
  for (const std::string& program : programs) {
    const std::string path = fmt::format("{}/{}", directory, program);
    if (::access(path.c_str(), X_OK) != 0)
      return fail(Errc::FileNotFound,
                  fmt::format("no program {}; build llama.cpp's {} and name its folder with --peer",
                              path, program));
  }
  auto scratch = TRY(TemporaryDirectory::create("peer"));
  return PeerPrograms(directory, std::move(scratch));
}

Result<std::string> PeerPrograms::output_of(const std::string& program,
                                            std::vector<std::string> arguments) const {
  Child child = TRY(starter_.start_reading(program, {.arguments = std::move(arguments)}));
  std::string output;
  std::optional<int> status;
  const SystemClock clock;
  for (const TimePoint deadline = clock.now() + kLongestRun; !status;) {
    if (clock.now() > deadline)
      return fail(Errc::TimedOut,
                  fmt::format("{} runs for more than ten minutes; use a smaller model", program));
    std::array<pollfd, 2> entries{pollfd{child.output().get(), POLLIN, 0},
                                  pollfd{child.pidfd().get(), POLLIN, 0}};
    ::poll(entries.data(), entries.size(), kPollMs);
    status = child.status();
    read_available(child.output(), output);
  }
  if (*status != 0)
    return fail(Errc::ConnectionLost, fmt::format("{} ended with {}; {}", program, *status,
                                                  starter_.end_of_log(program)));
  return output;
}

Result<std::string> PeerPrograms::version_of(const std::string& program) const {
  std::string text = TRY(output_of(program, {"--version"}));
  text += TRY(read_text_file(starter_.log_path(program), kMaxLogBytes));  // stderr
  const auto found = text.find(kVersion);
  if (found == std::string::npos)
    return fail(
        Errc::MalformedMessage,
        fmt::format("{} --version prints no version; use a llama.cpp that prints one", program));
  const auto begin = found + kVersion.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace leasehold
