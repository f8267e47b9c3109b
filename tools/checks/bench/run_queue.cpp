#include "tools/checks/bench/run_queue.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace leasehold::bench {
namespace {

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

Result<RunQueue> parse_schedstat(std::string_view text) {
  std::istringstream words{std::string(text)};
  RunQueue seen;
  std::uint64_t slices = 0;
  if (words >> seen.ran_ns >> seen.waited_ns >> slices) return seen;
  return fail(Errc::MalformedMessage,
              fmt::format("schedstat must have three numbers, but is \"{}\"", text));
}

RunQueue run_queue_of_thread(pid_t process, pid_t thread) {
  const auto seen =
      parse_schedstat(read_text(fmt::format("/proc/{}/task/{}/schedstat", process, thread)));
  return seen.value_or(RunQueue{});
}

RunQueue run_queue_of_process(pid_t process) {
  RunQueue sum;
  std::error_code gone;
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), gone)) {
    const auto seen = parse_schedstat(read_text(task.path() / "schedstat"));
    if (!seen) continue;
    sum.ran_ns += seen->ran_ns;
    sum.waited_ns += seen->waited_ns;
  }
  return sum;
}

double load_average() {
  std::istringstream words(read_text("/proc/loadavg"));
  double load = -1;
  words >> load;
  return words ? load : -1;
}

}  // namespace leasehold::bench
