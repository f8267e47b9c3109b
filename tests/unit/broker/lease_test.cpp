#include "broker/books/lease.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>

#include "common/machine/process.hpp"
#include "tests/unit/broker/world.hpp"

using namespace leasehold;

namespace {

// No proof has a public constructor.
static_assert(!std::is_constructible_v<LaunchQuiet, LeaseId>);
static_assert(!std::is_constructible_v<WorkerAck, LeaseId>);
static_assert(!std::is_constructible_v<ProcessExit, AttachmentId>);
static_assert(!std::is_constructible_v<NeverMapped, LeaseId>);
static_assert(!std::is_default_constructible_v<MachineRestart>);
static_assert(!std::is_default_constructible_v<FenceProof>);

// A duration is not a proof, and a fence requires one.
template <class L, class P>
concept FencedWith = requires(L lease, P proof) { fence(std::move(lease), proof, TimePoint{}); };
static_assert(!FencedWith<Lease<Revoked>, Duration>);
static_assert(FencedWith<Lease<Revoked>, ProcessExit>);

constexpr LeaseId kLease{.slot = 3, .generation = 7};
constexpr AttachmentId kWorker{5};

}  // namespace

TEST_CASE("lease: fencing requires a proof, a timeout is not one") {
  Lease<Live> live = open_lease(kLease, kWorker);
  Lease<Revoked> revoked = revoke(std::move(live), RevokeReason::Operator, TimePoint{10});
  const Lease<Fenced> fenced = fence(std::move(revoked), exit_of(kWorker), TimePoint{20});

  CHECK(fenced.id() == kLease);
  CHECK(fenced.state().reason == RevokeReason::Operator);
  CHECK(fenced.state().revoked_at == TimePoint{10});
  CHECK(fenced.state().at == TimePoint{20});
  CHECK(name(fenced.state().proof) == "ProcessExit");
}

TEST_CASE("lease: a proof covers only its own lease or worker") {
  const FenceProof proof = exit_of(kWorker);

  CHECK(covers(proof, kLease, kWorker));
  CHECK_FALSE(covers(proof, kLease, AttachmentId{6}));
}

TEST_CASE("lease: LaunchQuiet does not cover the next generation of a slot") {
  QuietObserver observer;
  const WorkerSegmentReader segment = WorkerSegmentReader::create().value();
  observer.watch(segment, {kWorker, Touches::TenantMemory, {kLease}});

  const FenceProof proof = observer.observe().at(0);

  CHECK(covers(proof, kLease, kWorker));
  CHECK_FALSE(covers(proof, LeaseId{.slot = 3, .generation = 8}, kWorker));
}

TEST_CASE("quiet: only units that can reach the lease must end after the flip") {
  const WorkerSegmentReader segment = WorkerSegmentReader::create().value();
  const WorkerSegmentWriter writer =
      WorkerSegmentWriter::attach(segment.writer_fd().value()).value();
  QuietObserver observer;
  const auto units_touch = GENERATE(Touches::WeightsAndScratch, Touches::TenantMemory);
  const auto scope = GENERATE(Touches::WeightsAndScratch, Touches::TenantMemory);
  writer.announce(9).store(announcement(1, units_touch));

  observer.watch(segment, {kWorker, scope, {kLease}});

  const bool reaches = units_touch >= scope;
  CHECK(observer.observe().empty() == reaches);
  writer.announce(9).store(announcement(2, units_touch));  // the next unit saw the flip
  CHECK(observer.observe().size() == (reaches ? 1u : 0u));
  CHECK_FALSE(observer.is_waiting());
}

namespace {

/// Every poll advances the time; at the fifth the unit ends.
class UnitEndsAtFifthPoll final : public Clock {
 public:
  explicit UnitEndsAtFifthPoll(const WorkerSegmentWriter& writer) : writer_(writer) {}
  TimePoint now() const override {
    if (++polls_ == 5) writer_.announce(0).store(announcement(1, Touches::Nothing));
    return {polls_ * 1000};
  }

 private:
  const WorkerSegmentWriter& writer_;
  mutable std::int64_t polls_ = 0;
};

}  // namespace

TEST_CASE("quiet: polling sees the unit end, and stops after a limit if it does not") {
  const WorkerSegmentReader segment = WorkerSegmentReader::create().value();
  const WorkerSegmentWriter writer =
      WorkerSegmentWriter::attach(segment.writer_fd().value()).value();
  const UnitEndsAtFifthPoll clock(writer);
  writer.announce(0).store(announcement(1, Touches::TenantMemory));
  QuietObserver observer;
  observer.watch(segment, {kWorker, Touches::TenantMemory, {kLease}});

  CHECK(observer.observe_for(Duration{500}, clock).empty());
  CHECK(observer.is_waiting());
  CHECK(observer.observe_for(Duration{100'000}, clock).size() == 1);
  CHECK_FALSE(observer.is_waiting());
}

TEST_CASE("exit: a running process is not evidence") {
  const pid_t self = ::getpid();
  const UniqueFd pidfd = std::move(open_pidfd(self)).value();
  CHECK_FALSE(ExitObserver::observe(kWorker, pidfd).has_value());
}
