// Peers of a worker's socket: strangers without a token, and a tenant with many connections. What
// they do costs other tenants and the worker nothing.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/random.hpp"
#include "ipc/control/transport/client.hpp"
#include "tests/support/raw_socket.hpp"
#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

constexpr std::size_t kConnections = 500;
constexpr int kPoll_ms = 100;
constexpr int kMaxRounds = 600;

/// A connection that sends one text as far as the worker reads it.
struct RawConnection {
  explicit RawConnection(const std::string& path) : fd(connect_raw(path)) {
    REQUIRE(fd);
    ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  }
  /// False once everything is sent or the worker has closed the connection.
  bool send_more(const std::string& text) {
    if (is_over) return false;
    const ssize_t n = ::send(fd.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (n > 0) sent += static_cast<std::size_t>(n);
    is_over = sent == text.size() || (n < 0 && errno != EAGAIN);
    return !is_over;
  }
  /// Reads to the end of the connection; nothing when it stays open.
  std::optional<std::string> read_to_end() {
    std::string received;
    char bytes[4096];
    for (int round = 0; round < kMaxRounds;) {
      const ssize_t n = ::recv(fd.get(), bytes, sizeof bytes, 0);
      if (n == 0 || (n < 0 && errno != EAGAIN)) return received;
      if (n > 0) received.append(bytes, static_cast<std::size_t>(n));
      if (n > 0) continue;
      pollfd wait{fd.get(), POLLIN, 0};
      ::poll(&wait, 1, kPoll_ms);
      ++round;
    }
    return std::nullopt;
  }

  UniqueFd fd;
  std::size_t sent = 0;
  bool is_over = false;
};

std::vector<RawConnection> connect_many(const std::string& path, std::size_t count) {
  std::vector<RawConnection> connections;
  for (std::size_t i = 0; i < count; ++i) connections.emplace_back(path);
  return connections;
}

/// Sends the text on all connections at once, until `is_done` or nothing more can be sent.
void flood(std::vector<RawConnection>& connections, const std::string& text,
           const std::function<bool()>& is_done) {
  for (int round = 0; round < kMaxRounds && !is_done(); ++round) {
    std::vector<pollfd> open;
    for (RawConnection& connection : connections) {
      if (connection.send_more(text)) open.push_back({connection.fd.get(), POLLOUT, 0});
    }
    if (open.empty()) return;
    ::poll(open.data(), open.size(), kPoll_ms);
  }
}

/// A valid line of almost 1 MiB that is expensive to parse.
std::string long_line() {
  std::string line = R"({"jsonrpc":"2.0","id":1,"method":"none","params":{"a":[)";
  while (line.size() < (1 << 20) - 16) line += "[],";
  return line + "[]]}}\n";
}

std::string authentication(const std::string& token) {
  const control::Json call = {{"jsonrpc", "2.0"},
                              {"id", 0},
                              {"method", std::string(wire::ConnectionAuthenticate::kMethod)},
                              {"params", wire::ConnectionAuthenticate{.token = token}.to_json()}};
  return call.dump() + "\n";
}

/// A lease, with the connection that holds it.
struct Holder {
  Holder(const System& system, const std::string& tenant)
      : broker(control::Client::connect(system.broker_socket()).value()),
        lease(acquire(broker, tenant)) {}
  control::Client broker;
  wire::LeaseAcquired lease;
};

SystemSpec impatient_broker() {
  return {.broker_arguments = {"--worker-timeout-ms", "4000"},
          .worker_arguments = {"--slow-motion-us", "100"}};
}

/// Of the first thread of a process; 0 where the kernel has no slice per thread. Source:
/// sched_setattr(2), sched_runtime of SCHED_OTHER.
std::chrono::nanoseconds time_slice_of(pid_t process) {
  struct {
    std::uint32_t size_bytes, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime_ns, deadline_ns, period_ns;
  } attributes{};
  REQUIRE(::syscall(SYS_sched_getattr, process, &attributes, sizeof attributes, 0) == 0);
  return std::chrono::nanoseconds(attributes.runtime_ns);
}

}  // namespace

TEST_CASE("security: long lines of 500 strangers do not cost a worker its broker or its tenants") {
  System system(impatient_broker());
  system.admit("ann");
  const TenantSpec request{.tenant = "ann", .max_tokens = 100};
  const auto ann = system.start_streaming(request, 1);
  const pid_t worker = system.worker().pid();
  auto strangers = connect_many(system.worker_socket("w1"), kConnections);

  flood(strangers, long_line(), [] { return false; });

  CHECK(ann->finish() == 0);
  for (RawConnection& stranger : strangers) {
    REQUIRE(stranger.read_to_end().has_value());
  }
  CHECK(system.undisturbed(request) == ann->record().tokens);
  CHECK(system.worker_is_ready());
  CHECK(system.worker().pid() == worker);
  CHECK_THAT(system.worker_log(), !Catch::Contains("broker disconnected"));
}

TEST_CASE("security: a tenant with 500 connections full of long lines costs the others nothing") {
  System system(impatient_broker());
  for (const char* tenant : {"ann", "greedy"}) system.admit(tenant);
  const TenantSpec request{.tenant = "ann", .max_tokens = 100};
  const auto ann = system.start_streaming(request, 1);
  const Holder holder(system, "greedy");
  const std::string text = authentication(holder.lease.token) + long_line();
  auto greedy = connect_many(holder.lease.address, kConnections);
  bool ann_has_ended = false;

  flood(greedy, text, [&] { return ann_has_ended || (ann_has_ended = ann->read()); });

  CHECK(ann->finish() == 0);
  CHECK(system.undisturbed(request) == ann->record().tokens);
  CHECK(system.worker_is_ready());
  CHECK_THAT(system.worker_log(), !Catch::Contains("broker disconnected"));
}

TEST_CASE("security: silent connections lock no tenant out of a worker, and the log says so once") {
  System system({.tenants = {"ann"}});
  auto silent = connect_many(system.worker_socket("w1"), 2 * kConnections);
  const TenantSpec request{.tenant = "ann", .max_tokens = 8};
  CHECK(system.undisturbed(request).size() == 8);
  for (RawConnection& connection : silent) REQUIRE(connection.read_to_end() == "");
  CHECK_THAT(system.worker_log(), Catch::Contains("connections to this worker reached a limit"));
}

TEST_CASE("security: the engine's time slice is short, so that it runs soon after it wakes") {
  if (time_slice_of(::getpid()) == std::chrono::nanoseconds(0)) {
    WARN("skipped: before Linux 6.12 a thread has no time slice of its own");
    return;
  }
  System system;
  CHECK(time_slice_of(system.worker().pid()) == std::chrono::microseconds(500));
}

}  // namespace leasehold::testing
