// What a request that lacks blocks gets when the broker does not lend more.
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/engine_rig.hpp"
#include "tests/unit/ipc/control/peer_fixture.hpp"
#include "worker/lease/growth_calls.hpp"
#include "worker/lease/lease_service.hpp"

namespace leasehold::testing {
namespace {

constexpr LeaseId kGrowingLease{3, 1};
constexpr TimePoint kGrowthStart{1'000};

/// A lease service whose broker refuses every `lease.grow` with `code`, and a request that waits
/// for its first block.
class WaitingRequest {
 public:
  explicit WaitingRequest(Errc code) {
    broker_seen_.on_call = [this, code](const std::string& method, control::Payload params,
                                        control::Responder respond) {
      if (method != wire::LeaseGrow::kMethod) return respond(std::move(params));
      asked.push_back(wire::LeaseGrow::from_json(params.body).value());
      respond(fail(code, "as the test says"));
    };
    std::filesystem::create_directory(directory_);
    auto acceptor = control::listen_on(io_, directory_ / "broker", 0600).value();
    acceptor.async_accept([this](boost::system::error_code, control::Socket socket) {
      broker_ = control::Peer::create(std::move(socket), broker_seen_.handlers());
      broker_->start();
    });
    link_ = BrokerLink::connect(io_, directory_ / "broker", {.on_call = {}, .on_disconnected = {}})
                .value();
    service_.emplace(LeaseService::Dependencies{.io = &io_,
                                                .mapper = io_.get_executor(),
                                                .unmapper = io_.get_executor(),
                                                .broker = link_.get(),
                                                .loop = &loop_,
                                                .engine = &rig.engine(),
                                                .table = &rig.table(),
                                                .clock = &rig.clock(),
                                                .blocks_per_extent = blocks_per_extent});
    run_until(io_, [this] { return broker_ != nullptr; });
    const LeaseId lease = rig.grant("t", /*extents=*/0);
    REQUIRE(rig.submit(rig.request("t", lease, "r", rig.encode("Once upon a time"), 5)));
  }
  ~WaitingRequest() { std::filesystem::remove_all(directory_); }

  /// Runs a step, sends what it asks for, and takes the answer.
  void step_and_ask() {
    REQUIRE(rig.step());
    service_->grow(rig.engine().take_growth_requests());
    take_answers();
  }
  void take_answers() {
    bool answered = false;  // replies arrive in order
    link_->call_async("later", {}, [&](const Result<control::Payload>&) { answered = true; });
    run_until(io_, [&] { return answered; });
    loop_.post([this](Engine&) { loop_.stop(); });
    REQUIRE(loop_.run());
  }

  /// Sends a growth request of the rig's lease, and takes the answer.
  void ask(const GrowthRequest& growth) {
    service_->grow({growth});
    take_answers();
  }

  static constexpr std::uint32_t blocks_per_extent = 102;
  EngineRig rig;
  std::vector<wire::LeaseGrow> asked;

 private:
  std::filesystem::path directory_ = std::filesystem::temp_directory_path() /
                                     ("leasehold-growth-test-" + std::to_string(getpid()));
  boost::asio::io_context io_;
  RecordedCalls broker_seen_;
  std::shared_ptr<control::Peer> broker_;
  std::unique_ptr<BrokerLink> link_;
  EngineLoop loop_{rig.engine(),
                   {.on_report = [](auto) {},
                    .on_growth = [](auto) {},
                    .on_drained = [](auto) {},
                    .on_weights_lost = [](Engine&) { return Result<void>{}; }}};
  std::optional<LeaseService> service_;
};

}  // namespace

TEST_CASE("growth: only a broker that lends no more, or a lease that ended, is a refusal") {
  const std::set<Errc> refusals{Errc::PoolExhausted, Errc::QuotaBlocks, Errc::OutOfMemory,
                                Errc::LeaseRevoked,  Errc::LeaseFenced, Errc::StaleGeneration,
                                Errc::BadRequest};
  for (int i = 0; i < kErrcCount; ++i) {
    const auto code = static_cast<Errc>(i);
    CAPTURE(name(code));
    GrowthCalls calls;
    REQUIRE(calls.begin(kGrowingLease, kGrowthStart));
    CHECK(calls.end(kGrowingLease, fail(code, ""), kGrowthStart) == refusals.contains(code));
  }
}

TEST_CASE("growth: while the broker reclaims memory a request waits, and is asked for again") {
  GrowthCalls calls;
  REQUIRE(calls.begin(kGrowingLease, kGrowthStart));
  const Error reclaiming{.code = Errc::PoolExhausted, .retry_after_ms = 50};
  CHECK_FALSE(calls.end(kGrowingLease, std::unexpected(reclaiming), kGrowthStart));
  CHECK(calls.begin(kGrowingLease, kGrowthStart + kGrowthRetryDelay));
}

TEST_CASE("growth: one call per lease at a time, and a pause after each that failed") {
  GrowthCalls calls;
  REQUIRE(calls.begin(kGrowingLease, kGrowthStart));
  CHECK_FALSE(calls.begin(kGrowingLease, kGrowthStart + 2 * kGrowthRetryDelay));
  CHECK(calls.begin({4, 1}, kGrowthStart));
  calls.end(kGrowingLease, fail(Errc::BrokerLost, ""), kGrowthStart);
  CHECK_FALSE(calls.begin(kGrowingLease, kGrowthStart + kGrowthRetryDelay - Duration(1)));
  REQUIRE(calls.begin(kGrowingLease, kGrowthStart + kGrowthRetryDelay));
  CHECK_FALSE(calls.end(kGrowingLease, {}, kGrowthStart + kGrowthRetryDelay));
  CHECK(calls.begin(kGrowingLease, kGrowthStart + kGrowthRetryDelay));
}

TEST_CASE("growth: swap is asked for beside KV memory, and each failure of it is a refusal") {
  constexpr auto kSwap = wire::MemoryPool::Swap;
  for (int i = 0; i < kErrcCount; ++i) {
    GrowthCalls calls;
    REQUIRE(calls.begin(kGrowingLease, kGrowthStart));
    REQUIRE(calls.begin(kGrowingLease, kGrowthStart, kSwap));
    CHECK_FALSE(calls.begin(kGrowingLease, kGrowthStart, kSwap));
    const Error error{.code = static_cast<Errc>(i), .retry_after_ms = 50};
    CHECK(calls.end(kGrowingLease, std::unexpected(error), kGrowthStart, kSwap));
    CHECK_FALSE(calls.begin(kGrowingLease, kGrowthStart, kSwap));  // too soon
    CHECK_FALSE(calls.begin(kGrowingLease, kGrowthStart));         // its call is in flight
    calls.forget(kGrowingLease);
    CHECK(calls.begin(kGrowingLease, kGrowthStart, kSwap));
    CHECK_FALSE(calls.end(kGrowingLease, {}, kGrowthStart, kSwap));
  }
}

TEST_CASE("growth: a request for swap names the pool, and its refusal leaves KV requests waiting") {
  WaitingRequest waiting(Errc::PoolExhausted);
  const LeaseId lease = waiting.rig.engine().scheduler().tenancies().ids().front();
  waiting.ask({lease, 2 * waiting.blocks_per_extent + 1, wire::MemoryPool::Swap});
  REQUIRE(waiting.asked.size() == 1);
  CHECK(waiting.asked[0].pool == wire::MemoryPool::Swap);
  CHECK(waiting.asked[0].extents == 3);
  CHECK(waiting.rig.engine().scheduler().tenancies().at(lease).growth.is_swap_denied());
  REQUIRE(waiting.rig.step());
  CHECK(waiting.rig.outcome("r").rejections.empty());
}

TEST_CASE("growth: the reply to a call of a lease that ended meanwhile changes nothing") {
  GrowthCalls calls;
  REQUIRE(calls.begin(kGrowingLease, kGrowthStart));
  calls.forget(kGrowingLease);
  CHECK_FALSE(calls.end(kGrowingLease, fail(Errc::PoolExhausted, ""), kGrowthStart));
  CHECK(calls.begin(kGrowingLease, kGrowthStart));
}

TEST_CASE("growth: while the broker resumes the worker a request waits, and is asked for again") {
  const Errc passing = GENERATE(Errc::PermissionDenied, Errc::BrokerLost, Errc::TimedOut);
  CAPTURE(name(passing));
  WaitingRequest waiting(passing);

  for (std::size_t calls = 1; calls <= 3; ++calls) {
    waiting.step_and_ask();
    CHECK(waiting.asked.size() == calls);
    CHECK(waiting.rig.engine().scheduler().tenancies().waiting_count() == 1);
    waiting.rig.clock().advance(kGrowthRetryDelay);
  }
  CHECK(waiting.rig.outcome("r").rejections.empty());
}

TEST_CASE("growth: when the broker lends no more, a request ends with PoolExhausted") {
  WaitingRequest waiting(Errc::PoolExhausted);
  waiting.step_and_ask();
  REQUIRE(waiting.rig.step());
  const auto& rejections = waiting.rig.outcome("r").rejections;
  REQUIRE(rejections.size() == 1);
  CHECK(rejections[0].reason.code == Errc::PoolExhausted);
}

}  // namespace leasehold::testing
