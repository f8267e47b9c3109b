// Leases of adapters with a real broker and its real memory. The worker has no model and fills them
// with nothing.
#include <catch2/catch.hpp>

#include "tests/process/broker/fake_worker.hpp"

namespace leasehold::testing::broker_adapters {
namespace {

constexpr std::uint64_t kExtentBytes = 2u << 20;
constexpr std::uint32_t kExtents = 32;  // of the pool

/// Tenant a may load the adapter "tone".
struct BrokerWithAdapter : BrokerWithWorker {
  BrokerWithAdapter() {
    ask(wire::TenantAdmit{.tenant = {"a"},
                          .max_adapters = 1,
                          .max_adapter_bytes = kExtents * kExtentBytes,
                          .request_id = next_request_id()});
    ask(wire::AdapterAdd{.adapter = {"tone"},
                         .file = "tone.gguf",
                         .tenant = TenantId{"a"},
                         .request_id = next_request_id()});
  }
  template <class Call>
  void ask(const Call& call) {
    client.call(std::string(Call::kMethod), {call.to_json(), {}}).value();
  }
  Result<LeaseId> open() {
    const wire::AdapterOpen call{.tenant = TenantId{"a"},
                                 .adapter = {"tone"},
                                 .version = 1,
                                 .digest = std::string(64, 'a'),
                                 .size_bytes = kExtentBytes,
                                 .request_id = next_request_id()};
    const control::Payload reply =
        TRY(worker.ask(std::string(wire::AdapterOpen::kMethod), {call.to_json(), {}}));
    return TRY(wire::AdapterOpened::from_json(reply.body)).lease;
  }
};

}  // namespace

TEST_CASE_METHOD(
    BrokerWithAdapter,
    "broker: an adapter without room is refused for a while, and gets memory that returns") {
  std::vector<LeaseId> texts;
  auto acquired = broker.acquire(client, "a");
  for (; acquired; acquired = broker.acquire(client, "a")) texts.push_back(acquired->lease);
  CHECK(texts.size() == kExtents);
  const auto refused = open();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::PoolExhausted);
  CHECK(refused.error().retry_after_ms > 0);

  broker.revoke(client, texts.front()).value();
  REQUIRE(eventually([&] { return broker.status(client).free_bytes == kExtentBytes; }));
  const auto opened = open();
  REQUIRE(opened);
  CHECK(worker.extents_of(*opened).size() == 1);
}

TEST_CASE_METHOD(
    BrokerWithAdapter,
    "broker: memory of an adapter that was touched after its fence is quarantined, and "
    "its worker gets no more") {
  REQUIRE(open());
  worker.write_before_unmap();

  ask(wire::LeaseRevoke{.adapter = AdapterName{"tone"}, .request_id = next_request_id()});

  REQUIRE(eventually([&] { return broker.status(client).quarantined_bytes == kExtentBytes; }));
  CHECK(broker.status(client).free_bytes == (kExtents - 1) * kExtentBytes);
  const auto refused = open();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::PermissionDenied);
}

}  // namespace leasehold::testing::broker_adapters
