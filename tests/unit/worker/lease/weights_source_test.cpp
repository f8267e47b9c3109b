// Weights whose engine leases are revoked while they are loaded, against a broker of the test.
#include "worker/lease/weights_source.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>

#include "tests/support/engine_rig.hpp"
#include "tests/unit/worker/lease/fake_weights_broker.hpp"

namespace leasehold::weights_source_test {
namespace {

using testing::FakeWeightsBroker;

/// Refuses each weights.open with LeaseRevoked, and after `revocations` of them with BadRequest.
struct Loading {
  explicit Loading(std::uint32_t revocations) : left(revocations) {}

  std::unexpected<Error> answer() {
    ++opened;
    if (left == 0) return fail(Errc::BadRequest, "no more");
    --left;
    return fail(Errc::LeaseRevoked, "lease 1.1 was revoked (operator)");
  }
  Error load() {
    auto weights = broker.load({});
    REQUIRE_FALSE(weights);
    return weights.error();
  }

  std::uint32_t left;
  std::atomic<std::uint32_t> opened = 0;
  FakeWeightsBroker broker{[this](const auto&, const auto&) { return answer(); }};
};

constexpr std::size_t kSecondPart = 1;  // in the order in which memory is lent

/// Lends memory for each part. Revokes the lease of the first part when the second is opened.
class Lending {
 public:
  using Poll = decltype(WeightsSource::Dependencies::poll);
  Result<Weights> load(Poll poll = {}, PlaceWeights place = {}) {
    return broker_.load({.table = &rig_.table(),
                         .backend = &rig_.backend(),
                         .place = std::move(place),
                         .unmap_elsewhere = [this](LeaseId lease) { unmapped.push_back(lease); },
                         .poll = std::move(poll)});
  }
  void revoke(LeaseId lease) { rig_.revoke(lease); }
  /// True while this process maps memory that was lent, in order.
  bool is_mapped(std::size_t at) const {
    struct stat found{};
    REQUIRE(::fstat(memory_.at(at).fd().get(), &found) == 0);
    const std::string inode = fmt::format(" {} ", found.st_ino);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
      if (line.contains(inode) && line.contains("memfd")) return true;
    return false;
  }
  const std::string& part(std::size_t at) const { return broker_.plan().parts[at].name; }
  std::size_t parts() const { return broker_.plan().parts.size(); }

  std::map<std::string, std::vector<LeaseId>> leases;  ///< By part, in order.
  std::vector<LeaseId> unmapped;
  bool are_published = false;  ///< Another worker has filled what is lent.

 private:
  Result<control::Payload> answer(const std::string& method, const control::Json& params) {
    if (method == wire::WeightsOpen::kMethod) return open(*wire::WeightsOpen::from_json(params));
    const auto publish = wire::WeightsPublish::from_json(params);
    control::Payload reply{.body = wire::Empty{}.to_json()};
    reply.fds.push_back(memory_.at(publish->region.value).open_read_only().value());
    return reply;
  }
  control::Payload open(const wire::WeightsOpen& request) {
    if (request.part == part(1) && leases[part(0)].size() == 1)
      rig_.revoke(leases[part(0)].front());
    const LeaseId lease{next_slot_++, 1};
    rig_.broker_table().grant(lease, TimePoint{});
    leases[request.part].push_back(lease);
    const RegionId region{memory_.size()};
    memory_.push_back(
        MemoryObject::create({.size_bytes = request.size_bytes, .final_seals = false}).value());
    control::Payload reply{
        .body = wire::WeightsOpened{.region = region, .lease = lease, .published = are_published}
                    .to_json()};
    reply.fds.push_back(are_published ? memory_.back().open_read_only().value()
                                      : memory_.back().fd().duplicate().value());
    return reply;
  }

  testing::EngineRig rig_;
  std::uint32_t next_slot_ = 100;  // behind those of the rig
  std::vector<MemoryObject> memory_;
  FakeWeightsBroker broker_{[this](const std::string& method, const control::Json& params) {
    return answer(method, params);
  }};
};

}  // namespace

TEST_CASE("weights source: a part whose lease is revoked each time ends the load after 8 reloads") {
  Loading loading(100);

  const Error error = loading.load();

  CHECK(error.code == Errc::LeaseRevoked);
  CHECK(error.scope == FailureScope::Engine);
  CHECK(error.detail.contains("part token_embd"));
  CHECK(error.detail.contains("lease 1.1 was revoked (operator)"));
  CHECK(error.detail.contains("start the worker again"));
  CHECK(loading.opened == 1 + WeightsSource::kMaxReloads);
}

TEST_CASE("weights source: after 8 reloads the next answer of the broker still counts") {
  Loading loading(WeightsSource::kMaxReloads);

  CHECK(loading.load().code == Errc::BadRequest);

  CHECK(loading.opened == 1 + WeightsSource::kMaxReloads);
}

TEST_CASE("weights source: a mapped part that is revoked while another loads is loaded again") {
  Lending lending;
  REQUIRE(lending.parts() > 2);

  const Result<Weights> weights = lending.load();

  REQUIRE(weights);
  CHECK_FALSE(weights->first_revoked_part());
  const auto& first = lending.leases.at(lending.part(0));
  REQUIRE(first.size() == 2);
  CHECK(id_of(weights->leases()[0]) == first.back());
  CHECK(lending.unmapped == std::vector{first.front()});
  for (std::size_t i = 1; i < lending.parts(); ++i)
    CHECK(lending.leases.at(lending.part(i)).size() == 1);
}

TEST_CASE(
    "weights source: a part whose revocation the poll reads first is unmapped when the poll says "
    "so") {
  Lending lending;
  int revocations = 0;
  const auto poll = [&](const auto& unmap) {
    if (lending.leases[lending.part(2)].empty() || revocations++ > 0) return;
    const LeaseId lease = lending.leases[lending.part(1)].front();
    REQUIRE(lending.is_mapped(kSecondPart));
    lending.revoke(lease);
    unmap(lease);
    CHECK_FALSE(lending.is_mapped(kSecondPart));
  };

  const Result<Weights> weights = lending.load(poll);

  REQUIRE(weights);
  CHECK(revocations > 0);
  CHECK_FALSE(weights->first_revoked_part());
  CHECK(lending.leases[lending.part(1)].size() == 2);
}

TEST_CASE("weights source: what must not wait for a load is polled at each retry") {
  int left = 5;
  FakeWeightsBroker broker([&](const auto&, const auto&) -> std::unexpected<Error> {
    if (left-- > 0) return fail(Errc::WeightsLoading, "another worker loads");
    return fail(Errc::BadRequest, "no more");
  });
  int polls = 0;
  CHECK_FALSE(broker.load({.poll = [&](const auto&) { ++polls; }}));
  CHECK(polls >= 6);
}

TEST_CASE("weights source: what must not wait for a load is polled while a part is filled") {
  Lending lending;
  int polls_of_fills = 0;
  REQUIRE(lending.load([&](const auto&) { ++polls_of_fills; }));
  // Before each open, and at each piece of each fill.
  const auto opens = static_cast<int>(lending.parts()) + 1;
  CHECK(polls_of_fills >= 3 * opens);
}

TEST_CASE("weights source: a part is placed once before it is filled, while it has no pages") {
  Lending lending;
  std::vector<std::uint64_t> placed;
  const auto place = [&](const UniqueFd& memory, const WeightsLayout& layout) {
    struct stat found{};
    REQUIRE(::fstat(memory.get(), &found) == 0);
    CHECK(found.st_blocks == 0);
    CHECK(static_cast<std::uint64_t>(found.st_size) == layout.size_bytes);
    placed.push_back(layout.size_bytes);
  };
  REQUIRE(lending.load({}, place));
  CHECK(placed.size() == lending.parts() + 1);  // the first part is loaded twice
}

TEST_CASE("weights source: what another worker has filled is not placed") {
  Lending lending;
  lending.are_published = true;
  int placed = 0;
  REQUIRE(lending.load({}, [&](const UniqueFd&, const WeightsLayout&) { ++placed; }));
  CHECK(placed == 0);
}

TEST_CASE("retry while loading: it waits as long as another worker loads") {
  constexpr int kTenHours = 360'000;  // pauses of 100 ms
  int pauses = 0;

  const auto opened = retry_while_loading(
      [&]() -> Result<int> {
        if (pauses < kTenHours) return fail(Errc::WeightsLoading, "this region is being filled");
        return 7;
      },
      [&] { ++pauses; });

  CHECK(opened == 7);
  CHECK(pauses == kTenHours);
}

TEST_CASE("retry while loading: any other error ends the wait at once") {
  for (const Errc code : {Errc::ConnectionLost, Errc::PoolExhausted, Errc::TimedOut}) {
    int asked = 0;
    const auto refused = retry_while_loading(
        [&]() -> Result<int> { return fail(++asked < 3 ? Errc::WeightsLoading : code, ""); },
        [] {});

    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == code);
    CHECK(asked == 3);
  }
}

}  // namespace leasehold::weights_source_test
