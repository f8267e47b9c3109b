// Whether a watch of the hosts of a cell hangs, as reads show it.
#include <catch2/catch.hpp>

#include "tools/gateway/decide/watch_check.hpp"

using namespace leasehold;
using namespace leasehold::gateway;

namespace {

const cell::CellKeys kKeys{CellName{"c"}};

/// What etcd has, and what a watch has reported of it.
struct Watched {
  WatchCheck check{kKeys};
  std::map<std::string, std::int64_t> stored;
  std::int64_t revision = 10;
  WatchCheck::Hosts hosts;
  std::int64_t newest = 10;

  void put(const std::string& host) { stored[host] = ++revision; }
  void erase(const std::string& host) {
    stored.erase(host);
    ++revision;
  }
  void report_all() {
    hosts.clear();
    for (const auto& [host, modified] : stored) {
      hosts.emplace(cell::HostName{host},
                    cell::SilentHosts::Seen{
                        .incarnation = {1}, .modified = {modified}, .since = {}, .record = {}});
    }
    newest = revision;
  }
  HostKeys read() const {
    HostKeys keys{.entries = {}, .revision = {revision}};
    for (const auto& [host, modified] : stored) {
      keys.entries.push_back({.key = kKeys.host(cell::HostName{host}),
                              .value = {},
                              .created = {1},
                              .modified = {modified}});
    }
    return keys;
  }
  bool is_behind(const HostKeys& keys) { return check.is_behind(keys, {newest}, hosts); }
  bool is_behind() { return is_behind(read()); }

  Watched() {
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
  CHECK_FALSE(cell.is_behind(earlier));
  CHECK_FALSE(cell.is_behind());
}
