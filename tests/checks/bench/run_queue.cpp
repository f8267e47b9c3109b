#include "tests/checks/bench/run_queue.hpp"

#include <fmt/format.h>

#include <algorithm>
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

ThreadRunQueues run_queues_of(pid_t process) {
  ThreadRunQueues threads;
  std::error_code gone;
  for (const auto& task :
       std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), gone)) {
    const auto seen = parse_schedstat(read_text(task.path() / "schedstat"));
    if (!seen) continue;  // the thread has ended
    std::string name = "main";
    if (task.path().filename() != std::to_string(process)) {
      name = read_text(task.path() / "comm");
      name.resize(name.find_last_not_of('\n') + 1);
    }
    RunQueue& sum = threads[name];
    sum.ran_ns += seen->ran_ns;
    sum.waited_ns += seen->waited_ns;
  }
  return threads;
}

ThreadRunQueues run_queues_between(const ThreadRunQueues& early, const ThreadRunQueues& late) {
  ThreadRunQueues between;
  for (const auto& [name, after] : late) {
    const auto found = early.find(name);
    const RunQueue before = found == early.end() ? RunQueue{} : found->second;
    // A smaller value than before means that a thread of this name has ended.
    between[name] = {.ran_ns = after.ran_ns - std::min(before.ran_ns, after.ran_ns),
                     .waited_ns = after.waited_ns - std::min(before.waited_ns, after.waited_ns)};
  }
  return between;
}

void add(ThreadRunQueues& sum, const ThreadRunQueues& more) {
  for (const auto& [name, thread] : more) {
    sum[name].ran_ns += thread.ran_ns;
    sum[name].waited_ns += thread.waited_ns;
  }
}

RunQueue sum_of(const ThreadRunQueues& threads) {
  RunQueue sum;
  for (const auto& [name, thread] : threads) {
    sum.ran_ns += thread.ran_ns;
    sum.waited_ns += thread.waited_ns;
  }
  return sum;
}

std::uint64_t waited_ns(const ThreadRunQueues& early, const ThreadRunQueues& late,
                        std::span<const char* const> names) {
  std::uint64_t sum = 0;
  for (const char* name : names) {
    const auto before = early.find(name);
    const auto after = late.find(name);
    if (before == early.end() || after == late.end()) continue;
    sum += after->second.waited_ns - std::min(before->second.waited_ns, after->second.waited_ns);
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
