// Weights that are restored after a revocation, against a broker of the test.
#include <catch2/catch.hpp>

#include "ipc/region/memory_object.hpp"
#include "ipc/table/lease_table.hpp"
#include "tests/support/leased_memory.hpp"
#include "tests/support/required.hpp"
#include "tests/unit/worker/lease/fake_weights_broker.hpp"

namespace leasehold::weights_restore_test {
namespace {

using testing::required;

constexpr LeaseId kRevoked{1, 1};
constexpr LeaseId kFresh{2, 1};

/// Counts what is mapped at the same time.
class CountingMapper final : public RegionMapper {
 public:
  Result<LeasedMapping> map(UniqueFd fd, std::size_t size_bytes, MapAccess access) const override {
    auto memory =
        std::make_shared<LeasedMapping>(TRY(host_mapper().map(std::move(fd), size_bytes, access)));
    const std::span<std::byte> range(const_cast<std::byte*>(testing::address_of(memory->base())),
                                     size_bytes);
    most = std::max(most, ++*mapped);
    std::shared_ptr<const void> owner(memory.get(),
                                      [memory, mapped = mapped](const void*) { --*mapped; });
    return LeasedMapping(std::move(owner), range, access);
  }
  std::shared_ptr<int> mapped = std::make_shared<int>(0);
  mutable int most = 0;
};

}  // namespace

TEST_CASE("weights source: a part that is restored is mapped once at any time") {
  std::optional<MemoryObject> memory;
  testing::FakeWeightsBroker broker([&memory](const auto&,
                                              const auto&) -> Result<control::Payload> {
    control::Payload reply{
        .body = wire::WeightsOpened{.region = {7}, .lease = kFresh, .published = true}.to_json()};
    reply.fds.push_back(TRY(memory->fd().duplicate()));
    return reply;
  });
  const WeightsPlan plan = broker.plan_of(WeightsScope::Model);
  const std::uint64_t size_bytes = plan.size_bytes();
  memory = required(MemoryObject::create({.name = "weights", .size_bytes = size_bytes}));
  LeaseTable table = required(LeaseTable::create(8));
  const TableReader reader = required(TableReader::attach(required(table.reader_fd())));
  table.grant(kRevoked, TimePoint{});
  table.grant(kFresh, TimePoint{});
  const CountingMapper regions;
  std::vector<Weights::MappedPart> parts;
  parts.push_back({.mapping = required(regions.map(required(memory->fd().duplicate()), size_bytes,
                                                   MapAccess::ReadOnly)),
                   .lease = required(reader.dependency(kRevoked))});
  Weights weights = required(Weights::bind(plan, broker.config(), std::move(parts)));
  table.restore(kRevoked, LeaseState::Revoked, RevokeReason::Operator);
  WeightsSource source = broker.source(plan, {.table = &reader, .regions = &regions});

  REQUIRE(required(source.restore(weights)));

  CHECK(id_of(weights.leases().front()) == kFresh);
  CHECK(*regions.mapped == 1);
  CHECK(regions.most == 1);
}

}  // namespace leasehold::weights_restore_test
