// Whether a watch of the hosts of a cell hangs, as reads show it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "tools/gateway/decide/watch_check.hpp"

using namespace leasehold;
using namespace leasehold::gateway;

namespace {

/// What etcd has, and what a watch has reported of it.
struct Watched {
  WatchCheck check;
  std::map<std::string, std::int64_t> stored;
  std::int64_t revision = 10;
  std::vector<etcd::WatchEvent> unreported;

  void put(const std::string& host) {
    stored[host] = ++revision;
    unreported.push_back({{.key = host, .value = {}, .created = {1}, .modified = {revision}}});
  }
  void erase(const std::string& host) {
    stored.erase(host);
    ++revision;
    unreported.push_back(
        {.entry = {.key = host, .value = {}, .created = {}, .modified = {revision}},
         .is_deleted = true});
  }
  void report_all() {
    for (const etcd::WatchEvent& event : unreported) check.reported(event);
    unreported.clear();
  }
  HostKeys read() const {
    HostKeys keys{.newest = {}, .count = stored.size(), .revision = {revision}};
    for (const auto& [host, modified] : stored) keys.newest = std::max(keys.newest, {modified});
    return keys;
  }
  bool is_behind() { return check.is_behind(read()); }

  Watched() {
    check.listed({}, {revision});
    for (const char* host : {"a", "b", "c"}) put(host);
    report_all();
  }
};

}  // namespace

TEST_CASE("watch check: a watch that reports what the read before found is not behind") {
  Watched cell;
  CHECK_FALSE(cell.is_behind());
  for (int i = 0; i < 3; ++i) {
    cell.put("b");
    cell.erase("c");
    CHECK_FALSE(cell.is_behind());
    cell.report_all();
    cell.put("c");
    CHECK_FALSE(cell.is_behind());
    cell.report_all();
  }
}

TEST_CASE("watch check: a watch that misses the beat of any host is behind at the second read") {
  Watched cell;
  cell.put(GENERATE("a", "b", "c", "new"));
  CHECK_FALSE(cell.is_behind());
  CHECK(cell.is_behind());
  cell.check.reset();
  CHECK_FALSE(cell.is_behind());
  CHECK_FALSE(cell.is_behind());  // it has not listed the hosts yet
}

TEST_CASE(
    "watch check: a watch that misses the deletion of any host is behind at the second read") {
  Watched cell;
  const std::string host = GENERATE("a", "b", "c");
  cell.erase(host);
  CHECK_FALSE(cell.is_behind());
  SECTION("it reports nothing") {
    CHECK(cell.is_behind());
  }
  SECTION("it reports the deletion") {
    cell.report_all();
    CHECK_FALSE(cell.is_behind());
  }
  SECTION("it reports that the host has joined again") {
    cell.put(host);
    cell.report_all();
    CHECK_FALSE(cell.is_behind());
  }
}

TEST_CASE("watch check: a watch that overtakes a read is not behind") {
  Watched cell;
  const HostKeys earlier = cell.read();
  cell.put("new");
  cell.report_all();
  CHECK_FALSE(cell.check.is_behind(earlier));
  CHECK_FALSE(cell.is_behind());
}

TEST_CASE("watch check: changes after a read do not hide what the watch lacks of it") {
  Watched cell;
  cell.erase("a");
  cell.unreported.clear();  // lost
  CHECK_FALSE(cell.is_behind());
  cell.erase("b");
  cell.report_all();
  CHECK(cell.is_behind());
}

TEST_CASE("watch check: a watch that goes on while hosts come and go is never behind") {
  Watched cell;
  for (int i = 0; i < 200; ++i) {
    const std::string host(1, static_cast<char>('a' + i * 7 % 23));
    if (i % 3 == 0)
      cell.erase(host);
    else
      cell.put(host);
    if (i % 2 == 0) cell.report_all();
    const HostKeys read = cell.read();
    if (i % 5 == 0) {
      cell.put("late");
      cell.report_all();  // the reply of the read comes after these
    }
    CHECK_FALSE(cell.check.is_behind(read));
    cell.report_all();
  }
}
