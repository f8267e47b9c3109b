// Device memory lent by real processes: broker, device agent and workers over a shared fake card.
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <fstream>
#include <thread>

#include "common/machine/process.hpp"
#include "ipc/cuda/device_mapper.hpp"
#include "tests/contract/region/region_kind.hpp"
#include "tests/process/broker/broker_process.hpp"
#include "tests/process/broker/fake_worker.hpp"
#include "tests/support/fake_cuda/card_state.hpp"

using namespace leasehold;
using testing::required;

namespace {

constexpr std::uint64_t kCapacity_bytes = 64u << 20;
constexpr std::size_t kExtent_bytes = 2u << 20;

/// One card for all test cases: the fake driver reads its path once per process.
void use_shared_card() {
  static const testing::CardState card;
  ::setenv("FAKE_CUDA_STATE", card.path().c_str(), 1);
}

std::vector<std::string> on_card() {
  use_shared_card();
  return {"--device", "cuda:0", "--fence-timeout-ms", "3600000"};
}

struct CardWithWorker : BrokerWithWorker {
  CardWithWorker() : BrokerWithWorker(on_card()) {}
};

/// Imports memory descriptors as a worker does.
class Importer {
 public:
  Importer() : context_(required(cuda::Context::retain(*required(cuda::load_driver()), 0))) {}

  LeasedMapping map(const UniqueFd& fd) const {
    return required(mapper_.map(required(fd.duplicate()), kExtent_bytes, MapAccess::ReadWrite));
  }

  bool is_all(const LeasedMapping& mapping, std::byte value) const {
    std::vector<std::byte> bytes(kExtent_bytes, ~value);
    const auto from = reinterpret_cast<CUdeviceptr>(testing::address_of(mapping.base()));
    const auto& driver = context_.driver();
    REQUIRE(driver.cuMemcpyDtoHAsync(bytes.data(), from, bytes.size(), nullptr) == CUDA_SUCCESS);
    REQUIRE(driver.cuCtxSynchronize() == CUDA_SUCCESS);
    return std::ranges::all_of(bytes, [value](std::byte each) { return each == value; });
  }

  void fill(const LeasedMapping& mapping, unsigned char value) const {
    const auto to = reinterpret_cast<CUdeviceptr>(testing::address_of(mapping.writable_base()));
    const std::vector<unsigned char> bytes(kExtent_bytes, value);
    const auto& driver = context_.driver();
    REQUIRE(driver.cuMemcpyHtoDAsync(to, bytes.data(), bytes.size(), nullptr) == CUDA_SUCCESS);
    REQUIRE(driver.cuCtxSynchronize() == CUDA_SUCCESS);
  }

  std::uint64_t free_bytes() const { return required(context_.memory()).free_bytes; }

 private:
  cuda::Context context_;
  cuda::DeviceMapper mapper_{context_};
};

/// Pid of the process's only child; 0 if there is none.
pid_t child_of(pid_t parent) {
  const std::string pid = std::to_string(parent);
  std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
  pid_t child = 0;
  children >> child;
  return child;
}

/// The device agent.
pid_t agent_of(const BrokerProcess& broker) {
  return child_of(broker.pid());
}

/// A worker that leaks its memory: its child keeps copies of the descriptors until the write end of
/// `keep_alive` is closed.
pid_t start_leaking_worker(const std::string& socket, int keep_alive, int to_close) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::close(to_close);
  FakeWorker worker(socket, "leaky");
  eventually([&] { return worker.granted() > 0; });
  if (::fork() == 0) {
    char byte = 0;
    (void)!::read(keep_alive, &byte, 1);
    ::_exit(0);
  }
  for (;;) ::pause();
}

}  // namespace

TEST_CASE_METHOD(
    CardWithWorker,
    "device: an extent is zero when granted, held after settle, and zero when granted again") {
  const Importer importer;
  worker.defer_settle_replies();
  const LeaseId lease = broker.acquire(client, "a").value().lease;
  const auto extents = worker.extents_of(lease);
  {
    const LeasedMapping mapping = importer.map(worker.keep_extent(lease));
    CHECK(importer.is_all(mapping, std::byte{0}));  // new memory of the fake card holds 0xAB
    importer.fill(mapping, 0x5a);
  }

  broker.revoke(client, lease).value();

  REQUIRE(eventually([&] { return worker.settling() == 1; }));
  for (int asked = 0; asked < 20; ++asked) {  // a quiet worker segment is not proof for a device
    REQUIRE(broker.view(client, lease).state == LeaseState::Revoked);
  }
  worker.send_settle_replies();
  REQUIRE(eventually([&] { return broker.status(client).held_bytes == kExtent_bytes; }));
  CHECK(broker.view(client, lease).proof == "WorkerAck");
  CHECK(broker.status(client).free_bytes == kCapacity_bytes - kExtent_bytes);

  const LeaseId next = broker.acquire(client, "a").value().lease;
  CHECK(worker.extents_of(next) == extents);
  CHECK(importer.is_all(importer.map(worker.keep_extent(next)), std::byte{0}));
  CHECK(broker.status(client).held_bytes == 0);
}

TEST_CASE("device: memory of a killed worker is free on the card") {
  BrokerProcess broker(on_card());
  const Importer importer;
  const std::uint64_t all_free = importer.free_bytes();
  ForkedProcess worker(::geteuid(), [&] { static FakeWorker forked(broker.socket(), "w0"); });
  control::Client client = broker.connect();
  broker.admit(client, "a");
  const LeaseId lease = broker.acquire(client, "a").value().lease;
  broker.acquire(client, "a").value();  // stays live until the worker is killed
  broker.revoke(client, lease).value();
  REQUIRE(eventually([&] { return broker.status(client).held_bytes == kExtent_bytes; }));
  CHECK(importer.free_bytes() == all_free - 2 * kExtent_bytes);

  worker.kill();

  REQUIRE(eventually([&] { return broker.status(client).free_bytes == kCapacity_bytes; }));
  CHECK(importer.free_bytes() == all_free);
}

TEST_CASE("device: memory still imported after its worker's exit is quarantined") {
  BrokerProcess broker(on_card());
  control::Client client = broker.connect();
  broker.admit(client, "a");
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t worker = start_leaking_worker(broker.socket(), ends[0], ends[1]);
  UniqueFd keep_alive(ends[1]);
  ::close(ends[0]);
  REQUIRE(eventually([&] { return broker.status(client).workers == 1; }));
  REQUIRE(eventually([&] { return broker.acquire(client, "a").has_value(); }));
  REQUIRE(eventually([&] { return child_of(worker) > 0; }));

  REQUIRE(::kill(worker, SIGKILL) == 0);
  REQUIRE(::waitpid(worker, nullptr, 0) == worker);

  REQUIRE(eventually([&] { return broker.status(client).quarantined_bytes == kExtent_bytes; }));
  const auto quarantined = client.call("quarantine.list", {}).value().body.at("items");
  CHECK(quarantined.at(0).at("why").get<std::string>().find("did not report") != std::string::npos);
}

TEST_CASE_METHOD(CardWithWorker,
                 "device: memory still being allocated when its lease is revoked becomes free") {
  const Importer importer;
  const std::uint64_t all_free = importer.free_bytes();
  control::Client holder = broker.connect();
  const LeaseId lease = broker.acquire(holder, "a").value().lease;
  const pid_t agent = agent_of(broker);
  REQUIRE(agent > 0);
  REQUIRE(::kill(agent, SIGSTOP) == 0);
  REQUIRE(eventually([&] { return is_stopped(agent); }));
  const wire::LeaseGrow grow{.lease = lease, .extents = 20, .request_id = next_request_id()};
  bool grown = true;
  std::jthread growing(
      [&] { grown = holder.call("lease.grow", {grow.to_json(), {}}).has_value(); });
  CHECK(eventually(
      [&] { return broker.status(client).free_bytes == kCapacity_bytes - 21 * kExtent_bytes; }));

  broker.revoke(client, lease).value();
  growing.join();
  CHECK_FALSE(grown);
  REQUIRE(eventually([&] { return worker.granted() == 0; }));
  worker.send_ready().value();  // sent after the unmap reply, so the broker has processed that
  REQUIRE(::kill(agent, SIGCONT) == 0);

  CHECK(eventually(
      [&] { return broker.status(client).free_bytes == kCapacity_bytes - kExtent_bytes; }));
  CHECK(eventually([&] { return importer.free_bytes() == all_free - kExtent_bytes; }));
  CHECK(broker.status(client).device_losses == 0);
}

TEST_CASE_METHOD(CardWithWorker,
                 "device: the broker outlives its agent and lends again through a new one") {
  const LeaseId lease = broker.acquire(client, "a").value().lease;
  const pid_t agent = agent_of(broker);
  REQUIRE(agent > 0);

  REQUIRE(::kill(agent, SIGKILL) == 0);

  REQUIRE(eventually([&] { return broker.view(client, lease).state != LeaseState::Live; }));
  CHECK(broker.view(client, lease).reason == RevokeReason::DeviceFault);
  REQUIRE(eventually([&] { return broker.status(client).device_state == "ready"; }));
  CHECK(broker.status(client).device_losses == 1);
  REQUIRE(eventually([&] { return broker.status(client).held_bytes == kExtent_bytes; }));
  const auto again = broker.acquire(client, "a");
  REQUIRE(again);
  CHECK(worker.extents_of(again->lease) != worker.extents_of(lease));
}

TEST_CASE("device: the agent ends when its broker is killed or stopped") {
  BrokerProcess broker(on_card());
  const UniqueFd agent = required(open_pidfd(agent_of(broker)));
  const int how = GENERATE(SIGKILL, SIGTERM);
  broker.signal(how);
  broker.wait();
  CHECK(eventually([&] { return has_exited(agent); }));
}

TEST_CASE("device: without a driver cuda:0 is refused and auto lends host memory") {
  const char* const before = ::getenv("LD_LIBRARY_PATH");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("LD_LIBRARY_PATH", "", 1);
  CHECK(run_broker_once({"--socket", "/tmp/leasehold-no-driver.sock", "--device", "cuda:0"}) ==
        exit_code(Errc::NoDevice));
  BrokerProcess broker({"--device", "auto", "--fence-timeout-ms", "3600000"});
  ::setenv("LD_LIBRARY_PATH", kept.c_str(), 1);
  control::Client client = broker.connect();
  CHECK(broker.status(client).device == "cpu");
}

TEST_CASE("device: auto lends the card's memory and status names the card") {
  use_shared_card();
  BrokerProcess broker({"--device", "auto", "--fence-timeout-ms", "3600000"});
  control::Client client = broker.connect();
  const wire::StatusView status = broker.status(client);
  CHECK(status.device == "cuda:0");
  CHECK(status.device_uuid.starts_with("GPU-"));
}

TEST_CASE("device: a missing card or a missing agent program has a typed error") {
  use_shared_card();
  const std::vector<std::string> socket{"--socket", "/tmp/leasehold-no-card.sock"};
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), socket.begin(), socket.end());
    return run_broker_once(more);
  };
  CHECK(run({"--device", "cuda:7"}) == exit_code(Errc::NoDevice));
  CHECK(run({"--device", "cuda:0", "--agent", "/no/such/program"}) ==
        exit_code(Errc::FileNotFound));
  CHECK(run({"--device", "gpu"}) == 2);
}

TEST_CASE("device: a capacity beyond the card's memory is refused") {
  use_shared_card();
  CHECK(run_broker_once({"--socket", "/tmp/leasehold-large.sock", "--device", "cuda:0",
                         "--capacity", "257MiB"}) == exit_code(Errc::BadRequest));
}
