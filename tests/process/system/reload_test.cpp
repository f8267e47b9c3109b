/// SIGHUP to a broker and a worker with a configuration file.
#include <signal.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/support/system.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::testing {
namespace {

class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text) { write(text); }
  void write(const std::string& text) {
    std::ofstream(path()) << text;
    ::chmod(path().c_str(), 0644);
  }
  std::string path() const { return directory_.path() / "program.toml"; }

 private:
  TemporaryDirectory directory_ = TemporaryDirectory::create("reload").value();
};

}  // namespace

TEST_CASE("reload: a worker takes over live keys, and names those that need a restart") {
  ConfigFile config("drain-timeout-ms = 600000\ntoken-budget = 256\n");
  System system({.worker_arguments = {"--slow-motion-us", "5000", "--config", config.path()}});
  const auto logged = [&](const std::string& line) {
    return eventually([&] { return count_of(system.worker_log(), line) == 1; });
  };
  config.write("drain-timeout-ms = 0\nmax-batch-size = 0\n");
  REQUIRE(system.worker().signal(SIGHUP));
  REQUIRE(logged("configuration not reloaded"));
  CHECK(count_of(system.worker_log(), config.path() + ":2: ") == 1);
  CHECK(count_of(system.worker_log(), "configuration changed") == 0);

  config.write("drain-timeout-ms = 0\ntoken-budget = 512\nlog-level = \"debug\"\n");
  REQUIRE(system.worker().signal(SIGHUP));
  REQUIRE(logged("configuration changed: drain-timeout-ms = 0"));
  CHECK(logged("configuration changed: log-level = \"debug\""));
  CHECK(logged("configuration not changed, restart needed: token-budget = 512"));

  // The text would take minutes; the new timeout ends it at once.
  system.admit("ann");
  const auto story = system.start_streaming({.tenant = "ann", .max_tokens = 480}, 2);
  REQUIRE(system.worker().signal(SIGTERM));
  CHECK(story->finish() == exit_code(Errc::Draining));
}

TEST_CASE("reload: a broker takes over live keys, keeps its leases, and ignores a wrong file") {
  ConfigFile config("max-shared-blocks = 0\nslots = 128\n");
  System system({.broker_arguments = {"--config", config.path()}});
  system.admit("ann");
  const auto story = system.start_streaming({.tenant = "ann"}, 2);
  const std::string text = system.directory() / "text";
  std::ofstream(text) << std::string(400, 'a');
  const auto publish = [&] {
    return system.brokerctl({"prefix", "publish", "--file", text, "--worker", "w1"});
  };
  const auto logged = [&](const std::string& line) {
    return eventually([&] { return count_of(system.broker_log(), line) == 1; });
  };
  config.write("max-shared-blocks = 1024\nno-such-key = 1\n");
  REQUIRE(system.broker().signal(SIGHUP));
  REQUIRE(logged("configuration not reloaded"));
  CHECK(publish() != 0);

  config.write("max-shared-blocks = 1024\nslots = 256\n");
  REQUIRE(system.broker().signal(SIGHUP));
  REQUIRE(logged("configuration changed: max-shared-blocks = 1024"));
  CHECK(logged("configuration not changed, restart needed: slots = 256"));
  CHECK(publish() == 0);
  CHECK(story->finish() == 0);
}

}  // namespace leasehold::testing
