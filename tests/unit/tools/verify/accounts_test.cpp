/// What the records of a certificate say about the memory of each lease.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/unit/tools/verify/certificate_checks.hpp"
#include "tools/verify/report.hpp"

using namespace leasehold;
using namespace leasehold::verify;
using wire::ErasureState;
using wire::MemoryFate;

TEST_CASE("verify: memory that is open, held or quarantined makes the certificate incomplete") {
  for (const auto& [fate, state] :
       {std::pair{MemoryFate::Held, ErasureState::Held},
        std::pair{MemoryFate::Quarantined, ErasureState::Quarantined}}) {
    SmallLog log = sample_log();
    const LeaseId lease = log.grant("t7");
    CHECK(exit_code(sound(log.certificate("t7"), log.key())) == 3);
    log.settle(lease, fate);
    const Verdict verdict = sound(log.certificate("t7"), log.key());
    CHECK(exit_code(verdict) == 3);
    CHECK(verdict.leases.at(lease).state == state);
    // the late outcome
    wire::MemorySettled late;
    late.from = fate;
    late.to = MemoryFate::ReleasedByDriver;
    late.extents = 2;
    late.bytes = 2 * SmallLog::kExtentBytes;
    log.settle(lease, {late}, ErasureState::Erased);
    CHECK(exit_code(sound(log.certificate("t7"), log.key())) == 0);
  }
}

TEST_CASE("verify: records that the broker could not write yet make the certificate incomplete") {
  SmallLog log = sample_log();
  log.waiting = 2;
  CHECK(exit_code(sound(log.certificate("t7"), log.key())) == 3);
  log.waiting = 0;
  log.gaps = 1;
  const Verdict verdict = sound(log.certificate("t7"), log.key());
  CHECK(exit_code(verdict) == 0);
  CHECK(report_text(verdict).contains("the host's disk was full"));
}

TEST_CASE("verify: a record that calls memory erased which is not is refused by name") {
  SmallLog log = sample_log();
  const LeaseId lease = log.grant("t7", 3);
  wire::MemorySettled settled;
  settled.extents = 2;
  settled.bytes = 2 * SmallLog::kExtentBytes;
  log.settle(lease, {settled}, ErasureState::Erased, 0);
  CHECK(fault(log.certificate("t7"), log.key()) ==
        "record 15 says that 0 extents are open, and its grants and ends leave 1");

  SmallLog held = sample_log();
  const LeaseId other = held.grant("t7", 2);
  settled.to = MemoryFate::Held;
  held.settle(other, {settled}, ErasureState::Erased);
  CHECK(fault(held.certificate("t7"), held.key()) ==
        "record 15 says that its lease is erased, and its memory is held");

  SmallLog twice = sample_log();
  const LeaseId third = twice.grant("t7", 2);
  settled.to = MemoryFate::VerifiedZero;
  twice.settle(third, {settled, settled}, ErasureState::Erased);
  CHECK(fault(twice.certificate("t7"), twice.key()) ==
        "record 15 settles 2 extents of kv as verified_zero, more than were open");
}

TEST_CASE("verify: a record that moves memory as no broker does is refused by name") {
  const auto fault_of = [](MemoryFate from, MemoryFate to) {
    SmallLog log = sample_log();
    const LeaseId lease = log.grant("t7", 2);
    wire::MemorySettled settled;
    settled.from = from;
    settled.to = to;
    settled.extents = 2;
    settled.bytes = 2 * SmallLog::kExtentBytes;
    log.settle(lease, {settled}, ErasureState::Erased);
    return fault(log.certificate("t7"), log.key());
  };
  const std::string name = "record 15 is not as a broker writes it: ";
  CHECK(fault_of(MemoryFate::VerifiedZero, MemoryFate::Held) ==
        name + "memory does not move from verified_zero to held");
  CHECK(fault_of(MemoryFate::Held, MemoryFate::Open) ==
        name + "memory does not move from held to open");
  CHECK(fault_of(MemoryFate::Open, MemoryFate::Adopted) ==
        name + "'adopted_by' is set if and only if memory was adopted");
}

TEST_CASE("verify: a signed record of another form is refused by name") {
  for (const wire::Json& kind : {wire::Json(5), wire::Json(), wire::Json("usage_record")}) {
    SmallLog log = sample_log();
    log.append_lease_record("t7", {{"record", kind}, {"tenant", "t7"}});
    CHECK(fault(log.certificate("t7"), log.key()) == "record 14 is not a record about a lease");
  }
}

TEST_CASE("verify: memory that a lease handed on counts there, and both records must agree") {
  SmallLog log = sample_log();
  const LeaseId from = log.grant("t7", 2);
  const LeaseId to{.slot = 9, .generation = 1};
  wire::MemorySettled settled;
  settled.to = MemoryFate::Adopted;
  settled.adopted_by = to;
  settled.extents = 2;
  settled.bytes = 2 * SmallLog::kExtentBytes;
  log.settle(from, {settled}, ErasureState::Erased);
  CHECK(fault(log.certificate("t7"), log.key()).contains("do not agree on the memory"));

  wire::LeaseGrantedRecord grant;
  grant.lease = to;
  grant.tenant = "t7";
  grant.opens = true;
  wire::MemoryGranted& memory = grant.granted.emplace_back();
  memory.adopted_from = from;
  memory.extents = 2;
  memory.bytes = settled.bytes;
  wire::Json fields = grant.to_json();
  fields["record"] = "lease_granted";
  log.append_lease_record("t7", fields);
  ++log.counts("t7").granted;
  ++log.counts("t7").open;
  const Verdict verdict = sound(log.certificate("t7"), log.key());
  CHECK(exit_code(verdict) == 3);
  CHECK(verdict.leases.at(from).state == ErasureState::Erased);
  CHECK(verdict.leases.at(to).state == ErasureState::Open);
}

TEST_CASE("verify: signed numbers that differ from the records are refused") {
  SmallLog log = sample_log();
  ++log.counts("t7").granted;
  CHECK(fault(log.certificate("t7"), log.key()) == "the signed numbers of leases do not add up");
  ++log.counts("t7").erased;
  CHECK(fault(log.certificate("t7"), log.key()).contains("the signed head counts 4 and 4"));
}
