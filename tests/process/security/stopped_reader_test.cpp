// No program waits for a reader of an output that stops, or ends.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <deque>

#include "tests/support/raw_socket.hpp"
#include "tests/support/required.hpp"
#include "tests/support/system.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::testing {
namespace {

/// A pipe at a path that is full and that its reader does not read.
class FullPipe {
 public:
  explicit FullPipe(const std::string& path) {
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    reader_.reset(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    const UniqueFd writer(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE(writer);
    while (::write(writer.get(), "x", 1) > 0) {
    }
  }
  void end_reader() { reader_.reset(); }

 private:
  UniqueFd reader_;
};

/// Broker, worker, monitor and a watching brokerctl; no process reads what any of them writes.
class UnreadSystem {
 public:
  UnreadSystem() {
    for (const char* output : {"broker", "worker-w1", "leasehold-monitor"})
      pipes_.emplace_back(programs_.log_path(output));  // stdout and stderr
    for (const char* output : {"broker.events", "w1.events"})
      pipes_.emplace_back(directory_.file(output));
    broker_.emplace(required(
        programs_.start_broker({.arguments = {"--capacity", "64MiB", "--fence-timeout-ms", "600000",
                                              "--event-log", directory_.file("broker.events")}})));
    if (!eventually([&] { return BrokerView::connect(programs_.broker_socket()).has_value(); }))
      throw std::runtime_error("the broker does not answer");
    view_.emplace(required(BrokerView::connect(programs_.broker_socket())));
    worker_.emplace(required(programs_.start_worker(
        "w1", bundled_model_path(),
        {.arguments = {"--slow-motion-us", "30", "--event-log", directory_.file("w1.events")}})));
    if (!eventually([&] { return is_ready(); })) throw std::runtime_error("no worker is ready");
    monitor_.emplace(required(programs_.start(
        "leasehold-monitor", {.arguments = {"--broker", programs_.broker_socket(), "--listen",
                                            directory_.file("monitor.sock")}})));
    watch_.emplace(required(
        programs_.start_reading("brokerctl", {.arguments = {"--socket", programs_.broker_socket(),
                                                            "-o", "json", "events", "--follow"}})));
  }

  int brokerctl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--socket", programs_.broker_socket()});
    Child child = required(
        programs_.start("brokerctl", {.arguments = std::move(arguments), .log_name = "control"}));
    return exit_status_of(child);
  }
  void admit(const std::string& tenant) {
    REQUIRE(brokerctl({"tenants", "admit", tenant, "--max-blocks", "2000"}) == 0);
  }
  Tenant start_tenant(const std::string& tenant, const std::string& max_tokens) {
    return Tenant(required(programs_.start_tenant(
        tenant, "Once upon a time", {.arguments = {"--max-tokens", max_tokens, "--ignore-eos"}})));
  }
  /// The body of an answer over the monitor's Unix socket; empty when it does not answer.
  std::string metrics() {
    const UniqueFd fd = connect_raw(directory_.file("monitor.sock"));
    if (!fd) return "";
    const std::string request = "GET /metrics HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n";
    (void)!::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
    return read_all(fd);
  }
  bool all_run() { return !broker_->status() && !worker_->status() && !monitor_->status(); }
  void end_readers() {
    for (FullPipe& pipe : pipes_) pipe.end_reader();
  }
  std::uint64_t log_lines_dropped() { return view_->status().value().log_lines_dropped; }
  int stop_broker() {
    REQUIRE(broker_->signal(SIGTERM));
    return exit_status_of(*broker_);
  }

 private:
  bool is_ready() {
    const auto workers = view_->workers();
    return workers && !workers->empty() && workers->front().state == "ready";
  }

  TemporaryDirectory directory_ = TemporaryDirectory::create("unread").value();
  ProgramStarter programs_{program_dir(), directory_.path()};
  std::deque<FullPipe> pipes_;
  std::optional<Child> broker_;
  std::optional<BrokerView> view_;
  std::optional<Child> worker_, monitor_, watch_;
};

}  // namespace

TEST_CASE("readers: none that stops or ends delays a revocation, another text or an exit") {
  UnreadSystem system;
  for (const char* tenant : {"ann", "bob", "eve"}) system.admit(tenant);
  Tenant eve = system.start_tenant("eve", "400");  // no process reads it
  Tenant ann = system.start_tenant("ann", "400");
  Tenant bob = system.start_tenant("bob", "400");
  REQUIRE(ann.read_tokens(1));
  REQUIRE(bob.read_tokens(1));

  CHECK(system.brokerctl({"revoke", "--tenant", "ann", "--wait"}) == 0);
  CHECK(ann.finish() == exit_code(Errc::LeaseRevoked));
  CHECK(bob.finish() == 0);
  CHECK(bob.record().tokens.size() == 400);
  CHECK(eventually(
      [&] { return system.metrics().contains("leasehold_broker_log_lines_dropped_total 0"); }));

  system.end_readers();
  Tenant bob_again = system.start_tenant("bob", "400");
  REQUIRE(bob_again.read_tokens(1));
  CHECK(system.brokerctl({"revoke", "--tenant", "bob", "--wait"}) == 0);
  CHECK(bob_again.finish() == exit_code(Errc::LeaseRevoked));
  CHECK(eventually([&] { return system.log_lines_dropped() > 0; }));
  CHECK(system.metrics().contains("leasehold_monitor_log_lines_dropped_total"));
  CHECK(system.all_run());
  CHECK(system.stop_broker() == 0);
}

}  // namespace leasehold::testing
