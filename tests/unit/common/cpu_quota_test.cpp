#include "common/machine/cpu_quota.hpp"

#include <catch2/catch.hpp>
#include <map>

namespace leasehold {
namespace {

using Files = std::map<std::string, std::string>;

std::optional<double> quota_in(const Files& files) {
  return cpu_quota([&](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  });
}

}  // namespace

TEST_CASE("cpu quota: the two numbers of cpu.max are time and period") {
  CHECK(parse_cpu_max("150000 100000\n") == 1.5);
  CHECK(parse_cpu_max("50000 100000") == 0.5);
}

TEST_CASE("cpu quota: max and malformed texts give none") {
  for (const char* text : {"max 100000\n", "", "\n", "100000", "1 0", "0 100000", "1 x",
                           "-1 100000", "1 2 3", "99999999999999999999 1"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_cpu_max(text));
  }
}

TEST_CASE("cpu quota: the smallest one of the process's group and of those above it counts") {
  Files files{{"/proc/self/cgroup", "3:cpuset:/other\n0::/a/b\n"},
              {"/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n"},
              {"/sys/fs/cgroup/a/cpu.max", "max 100000\n"},
              {"/sys/fs/cgroup/other/cpu.max", "100000 100000\n"}};
  CHECK(quota_in(files) == 4.0);
  files["/sys/fs/cgroup/a/cpu.max"] = "250000 100000\n";
  CHECK(quota_in(files) == 2.5);
  files["/sys/fs/cgroup/cpu.max"] = "100000 100000\n";  // in a container, its own group
  CHECK(quota_in(files) == 1.0);
  files["/proc/self/cgroup"] = "0::/\n";
  CHECK(quota_in(files) == 1.0);
}

TEST_CASE("cpu quota: without groups of version 2 there is none") {
  CHECK_FALSE(quota_in({}));
  CHECK_FALSE(quota_in(
      {{"/proc/self/cgroup", "1:cpu:/a\n"}, {"/sys/fs/cgroup/a/cpu.max", "100000 100000\n"}}));
  CHECK_FALSE(quota_in({{"/proc/self/cgroup", "0::/a\n"}}));
}

}  // namespace leasehold
