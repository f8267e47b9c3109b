// A whole engine with its compute threads, while a broker's thread revokes leases and a client's
// thread cancels, all in one process over one mapping.
#include <catch2/catch.hpp>
#include <map>
#include <mutex>
#include <thread>

#include "common/random.hpp"
#include "tests/support/engine_rig.hpp"

namespace leasehold::testing {
namespace {

constexpr WorkerId kWorker{0};
constexpr std::uint32_t kTenants = 3;
constexpr std::uint32_t kRounds = 12;
constexpr std::uint32_t kTokens = 12;

/// The broker's thread: revokes the given leases and waits for quiet.
class BrokerThread {
 public:
  BrokerThread(EngineRig& rig, std::uint64_t seed)
      : rig_(rig), random_(seed), thread_([this](const std::stop_token& stop) { run(stop); }) {}

  void revoke_later(LeaseId lease) {
    const std::scoped_lock lock(mutex_);
    requested_.push_back(lease);
  }
  std::vector<LeaseId> quiet() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(quiet_, {});
  }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (const auto lease = next()) revoke(*lease, stop);
      std::this_thread::yield();
    }
  }

  std::optional<LeaseId> next() {
    const std::scoped_lock lock(mutex_);
    if (requested_.empty()) return std::nullopt;
    const auto chosen =
        requested_.begin() + static_cast<std::ptrdiff_t>(random_.below(requested_.size()));
    const LeaseId lease = *chosen;
    requested_.erase(chosen);
    return lease;
  }

  void revoke(LeaseId lease, const std::stop_token& stop) {
    const LeaseTable::LeaseChange flip{lease, LeaseState::Revoked, RevokeReason::Operator};
    rig_.broker_table().store_words(kWorker, std::span(&flip, 1), TimePoint{1});
    const WorkerSegmentReader::Snapshot seen = rig_.worker_segment().snapshot();
    while (!rig_.worker_segment().is_quiet_since(seen, Touches::TenantMemory) &&
           !stop.stop_requested()) {
      std::this_thread::yield();
    }
    const std::scoped_lock lock(mutex_);
    quiet_.push_back(lease);
  }

  EngineRig& rig_;
  SeededRandom random_;
  std::mutex mutex_;
  std::vector<LeaseId> requested_;
  std::vector<LeaseId> quiet_;
  std::jthread thread_;
};

/// A client's thread that cancels the given requests.
class Canceller {
 public:
  explicit Canceller(RunningRequests& running_requests)
      : running_requests_(running_requests), thread_([this](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            cancel_all();
            std::this_thread::yield();
          }
        }) {}

  void cancel(const std::string& id) {
    const std::scoped_lock lock(mutex_);
    ids_.push_back(RequestId{id});
  }

 private:
  void cancel_all() {
    const std::scoped_lock lock(mutex_);
    std::erase_if(ids_, [this](const RequestId& id) {
      return running_requests_.stop(id, LocalStop::Cancelled);
    });
  }

  RunningRequests& running_requests_;
  std::mutex mutex_;
  std::vector<RequestId> ids_;
  std::jthread thread_;
};

}  // namespace

TEST_CASE("engine storm: under revocations and cancels every request has exactly one end") {
  EngineRig rig({.threads = 3, .one_mapping = true});
  std::vector<std::string> ids;
  {
    BrokerThread broker(rig, /*seed=*/3);
    Canceller canceller(rig.running_requests());
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      for (std::uint32_t t = 0; t < kTenants; ++t) {
        const std::string tenant = "t" + std::to_string(t);
        ids.push_back(tenant + "-" + std::to_string(round));
        const LeaseId lease = rig.grant(tenant);
        REQUIRE(rig.submit(
            rig.request(tenant, lease, ids.back(), rig.encode("Once upon a time"), kTokens)));
        broker.revoke_later(lease);
        if (t == 0) canceller.cancel(ids.back());
      }
      for (std::uint32_t step = 0; step < kTokens; ++step) REQUIRE(rig.step());
      for (const LeaseId lease : broker.quiet()) rig.drop(lease);
    }
  }
  rig.run();
  for (const std::string& id : ids) {
    CAPTURE(id);
    REQUIRE(rig.outcome(id).completions.size() == 1);
  }
}

}  // namespace leasehold::testing
