#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "broker/books/state.hpp"
#include "broker/server/start/fd_keeper.hpp"
#include "common/machine/text_file.hpp"
#include "tests/checks/local_system/fd_store.hpp"
#include "tests/support/test_paths.hpp"

using namespace leasehold;

namespace {

struct Run {
  int status = -1;
  std::string output;
};

Run run(FdStore& store, std::vector<std::string> words, std::vector<std::string> environment = {}) {
  words.insert(words.begin(), program_path("fd_keeper_child"));
  Child child = store
                    .start({.argv = std::move(words),
                            .log_path = "/dev/null",
                            .read_output = true,
                            .environment = std::move(environment)})
                    .value();
  Run run;
  eventually([&] {
    const auto status = child.status();
    run.status = status.value_or(-1);
    return status.has_value();
  });
  char bytes[512];
  const ssize_t size = ::read(child.output().get(), bytes, sizeof(bytes));
  if (size > 0) run.output.assign(bytes, static_cast<std::size_t>(size));
  return run;
}

UniqueFd file_holding(const char* text) {
  UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
  REQUIRE(::dprintf(file.get(), "%s", text) > 0);
  return file;
}

}  // namespace

TEST_CASE("fd store: kept descriptors return by name at each start") {
  FdStore store;
  CHECK(run(store, {"keep", "table", "keep", "segment-7"}).output == "taken\n");

  const Run second = run(store, {});
  const Run third = run(store, {});

  CHECK(second.output == "segment-7=segment-7;table=table;taken\n");
  CHECK(third.output == second.output);
}

TEST_CASE("fd store: a removed descriptor does not return") {
  FdStore store;
  run(store, {"keep", "table", "keep", "segment-7"});

  run(store, {"remove", "segment-7"});

  CHECK(run(store, {}).output == "table=table;taken\n");
}

TEST_CASE("fd store: a final stop removes all descriptors") {
  FdStore store;
  run(store, {"keep", "table"});

  run(store, {"keep", "segment-7", "remove-all"});

  CHECK(run(store, {}).output == "taken\n");
  CHECK(store.names().empty());
}

TEST_CASE("fd store: a name that is listed twice is ignored") {
  FdStore store;
  store.put("table", file_holding("one"));
  store.put("table", file_holding("two"));
  store.put("socket", file_holding("s"));

  CHECK(run(store, {}).output == "socket=s;taken\n");
}

TEST_CASE("fd store: descriptors for another process are ignored") {
  FdStore store;
  CHECK(run(store, {}, {"LISTEN_PID=1", "LISTEN_FDS=1", "LISTEN_FDNAMES=table"}).output ==
        "taken\n");
}

TEST_CASE("fd store: damaged variables are an error") {
  FdStore store;
  store.put("table", file_holding("one"));
  const Run damaged = run(store, {}, {"LISTEN_FDS=-3"});
  CHECK(damaged.status == exit_code(Errc::SystemError));
}

TEST_CASE("fd store: without a service manager keeping is not an error") {
  ::unsetenv("NOTIFY_SOCKET");
  FdKeeper fd_store;
  CHECK(fd_store.keep("table", file_holding("x")));
  fd_store.remove("table");
}

TEST_CASE("fd store: an unreachable service manager is a non-fatal error") {
  ::setenv("NOTIFY_SOCKET", "/nowhere/notify", 1);
  const auto kept = FdKeeper().keep("table", file_holding("x"));
  ::unsetenv("NOTIFY_SOCKET");
  REQUIRE_FALSE(kept);
  CHECK(kept.error().code == Errc::SystemError);
}

TEST_CASE("fd store: readiness reaches the service manager") {
  FdStore store;
  run(store, {});
  CHECK_FALSE(store.is_ready());
  run(store, {"ready"});
  CHECK(store.is_ready());
}

TEST_CASE("fd store: the systemd unit stores all that a broker may keep") {
  const std::string unit =
      read_text_file(source_dir() + "/tools/systemd/leasehold-broker.service", 1 << 20).value();
  const std::uint32_t most = kept::most(BrokerConfig{}.max_weights_regions);
  INFO("a broker keeps up to " << most);
  CHECK(unit.find("\nFileDescriptorStoreMax=" + std::to_string(most) + "\n") != std::string::npos);
}

TEST_CASE("fd store: a store that is too small is reported with what to set") {
  const auto shortage = kept::shortage("1024", 4290);
  REQUIRE(shortage);
  CHECK(shortage->find("stores 1024") != std::string::npos);
  CHECK(shortage->find("FileDescriptorStoreMax=4290") != std::string::npos);
  for (const char* enough : {"4290", "65536", "x", "", static_cast<const char*>(nullptr)})
    CHECK_FALSE(kept::shortage(enough, 4290));
}

TEST_CASE("fd store: names are built by one function") {
  CHECK(kept::segment(3) == "segment-3");
  CHECK(kept::wakeup_fd(3) == "wakeup_fd-3");
  CHECK(kept::pidfd(3) == "pidfd-3");
  CHECK(kept::spill(3) == "spill-3");
  CHECK(kept::weights(4) == "weights-4");
}
