#include "common/machine/control_group.hpp"

#include <catch2/catch.hpp>
#include <map>

using namespace leasehold;

namespace {

using Files = std::map<std::string, std::string>;

std::optional<GroupMemory> memory_in(const Files& files) {
  return group_memory([&](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    return found == files.end() ? std::nullopt : std::optional(found->second);
  });
}

}  // namespace

TEST_CASE("control group: the smallest memory limit of the group and of those above it counts") {
  Files files{{"/proc/self/cgroup", "0::/a/b\n"},
              {"/sys/fs/cgroup/a/b/memory.max", "max\n"},
              {"/sys/fs/cgroup/a/b/memory.current", "900\n"}};
  CHECK_FALSE(memory_in(files));
  files["/sys/fs/cgroup/a/memory.max"] = "1000\n";
  files["/sys/fs/cgroup/a/memory.current"] = "900\n";
  files["/sys/fs/cgroup/a/memory.stat"] = "anon 600\nfile 300\ninactive_file 50\nactive_file 100\n";
  REQUIRE(memory_in(files));
  CHECK(memory_in(files)->limit_bytes == 1000);
  CHECK(memory_in(files)->available_bytes == 250);  // the cache of files can be dropped
  CHECK(memory_in(files)->limit_file == "/sys/fs/cgroup/a/memory.max");
  files["/sys/fs/cgroup/a/b/memory.max"] = "2000\n";  // 1100 of them are left
  CHECK(memory_in(files)->limit_bytes == 1000);
  CHECK(memory_in(files)->available_bytes == 250);
  files["/sys/fs/cgroup/memory.max"] = "500\n";  // in a container, its own group
  CHECK(memory_in(files)->limit_bytes == 500);
}

TEST_CASE("control group: limits of version 1 count, too, and its word for none does not") {
  Files files{{"/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/a\n0::/\n"},
              {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000\n"},
              {"/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "900\n"},
              {"/sys/fs/cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 40\n"},
              {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}};
  REQUIRE(memory_in(files));
  CHECK(memory_in(files)->limit_bytes == 1000);
  CHECK(memory_in(files)->available_bytes == 140);
  files["/sys/fs/cgroup/memory/a/memory.limit_in_bytes"] = "9223372036854771712\n";
  CHECK_FALSE(memory_in(files));
}

TEST_CASE(
    "control group: more use than the limit leaves nothing, and malformed files say nothing") {
  Files files{{"/proc/self/cgroup", "0::/\n"},
              {"/sys/fs/cgroup/memory.max", "1000\n"},
              {"/sys/fs/cgroup/memory.current", "1200\n"}};
  CHECK(memory_in(files)->available_bytes == 0);
  for (const char* text : {"", "x", "12x", "-1", "99999999999999999999"}) {
    files["/sys/fs/cgroup/memory.max"] = text;
    CHECK_FALSE(memory_in(files));
  }
  CHECK_FALSE(memory_in({{"/proc/self/cgroup", "garbage\n:\n0:\n"}}));
  CHECK_FALSE(memory_in({}));
}
