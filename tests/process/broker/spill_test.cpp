// The spill files of a broker process: what it refuses to start with, and what its workers get.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "common/cli/print_error.hpp"
#include "tests/checks/local_system/fd_store.hpp"
#include "tests/process/broker/fake_worker.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::vector<std::string> spill_arguments(const std::string& directory,
                                         const std::string& capacity = "16MiB") {
  return {"--swap-capacity", "16MiB", "--spill-dir", directory, "--spill-capacity", capacity};
}

/// The exit code of a broker that is expected not to start.
int start(std::vector<std::string> arguments) {
  const auto socket = TemporaryDirectory::create("socket").value();
  arguments.insert(arguments.end(), {"--socket", socket.file("s")});
  return run_broker_once(std::move(arguments));
}

std::int64_t size_of(const UniqueFd& fd) {
  struct stat status{};
  REQUIRE(::fstat(fd.get(), &status) == 0);
  return status.st_size;
}

}  // namespace

TEST_CASE("spill: a broker does not start with a directory that it cannot trust or fill") {
  const auto directory = TemporaryDirectory::create("spill").value();
  const std::string link = directory.file("link");
  std::filesystem::create_directory_symlink("/tmp", link);
  CHECK(start(spill_arguments(directory.file("gone"))) == exit_code(Errc::BadRequest));
  CHECK(start(spill_arguments(link)) == exit_code(Errc::BadRequest));
  CHECK(start(spill_arguments(directory.path(), "1024TiB")) == exit_code(Errc::DiskFull));
  REQUIRE(::chmod(directory.path().c_str(), 0777) == 0);
  CHECK(start(spill_arguments(directory.path())) == exit_code(Errc::PermissionDenied));
}

TEST_CASE("spill: directory, capacity and swap are given together") {
  const auto directory = TemporaryDirectory::create("spill").value();
  constexpr int kUsage = 2;
  CHECK(start({"--swap-capacity", "16MiB", "--spill-dir", directory.path()}) == kUsage);
  CHECK(start({"--swap-capacity", "16MiB", "--spill-capacity", "16MiB"}) == kUsage);
  CHECK(start({"--spill-dir", directory.path(), "--spill-capacity", "16MiB"}) == kUsage);
}

TEST_CASE("spill: a restarted broker knows the files of its workers, and lends the rest") {
  const auto directory = TemporaryDirectory::create("spill").value();
  const auto state = TemporaryDirectory::create("state").value();
  FdStore store;
  std::vector<std::string> arguments = spill_arguments(directory.path());
  arguments.insert(arguments.end(), {"--state-dir", state.path(), "--reattach-grace-ms", "600000"});
  BrokerProcess broker(arguments, &store);
  FakeWorker worker(broker.socket(), "w0");
  const UniqueFd file = worker.open_spill().value();
  CHECK(size_of(file) == 8 * kMiB);
  CHECK(size_of(worker.open_spill().value()) == 8 * kMiB);  // the same one
  control::Client client = broker.connect();
  CHECK(broker.status(client).spill_capacity_bytes == 16 * kMiB);
  CHECK(broker.status(client).spill_lent_bytes == 8 * kMiB);

  broker.kill_and_restart();
  client = broker.connect();
  CHECK(broker.status(client).spill_lent_bytes == 8 * kMiB);
  REQUIRE(worker.reconnect(broker.socket()));
  REQUIRE(worker.send_ready());
  FakeWorker other(broker.socket(), "w1");
  CHECK(size_of(other.open_spill().value()) == 4 * kMiB);
  CHECK(broker.status(client).spill_lent_bytes == 12 * kMiB);
}

TEST_CASE("spill: a worker for which the disk has no room serves without a file") {
  const auto directory = TemporaryDirectory::create("spill").value();
  BrokerProcess broker(spill_arguments(directory.path()));
  const rlimit limit{2 * kMiB, 2 * kMiB};
  REQUIRE(::prlimit(broker.pid(), RLIMIT_FSIZE, &limit, nullptr) == 0);
  FakeWorker worker(broker.socket(), "w0");
  const auto refused = worker.open_spill();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::DiskFull);

  control::Client client = broker.connect();
  CHECK(broker.status(client).spill_lent_bytes == 0);
  broker.admit(client, "a");
  CHECK(broker.acquire(client, "a"));
}

TEST_CASE("spill: a broker without a directory lends no file") {
  BrokerProcess broker;
  FakeWorker worker(broker.socket(), "w0");
  const auto none = worker.open_spill();
  REQUIRE(none);
  CHECK_FALSE(*none);
}

}  // namespace leasehold::testing
