/// A sample of a log, and what the verifier says about certificates.
#pragma once

#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "tests/unit/tools/verify/small_log.hpp"
#include "tools/verify/verify.hpp"

namespace leasehold::verify {

/// Tenant t7 had three leases, all erased, and alice two, among records of other kinds.
inline SmallLog sample_log() {
  SmallLog log;
  const LeaseId first = log.grant("t7");
  const LeaseId other = log.grant("alice");
  log.use("t7");
  log.settle(first);
  const LeaseId second = log.grant("t7");
  log.settle(other);
  log.grant("t7", 3, second);
  log.grant("alice");
  log.settle(second);
  log.use("alice");
  const LeaseId third = log.grant("t7", 1);
  log.settle(third, wire::MemoryFate::ReleasedByDriver);
  log.use("bob");
  return log;
}

/// What is wrong with a certificate that must be refused.
inline std::string fault(const std::string& certificate, const audit::PublicKey& key,
                         const std::optional<std::string>& kept = std::nullopt) {
  const auto verdict = verify::verify(certificate, {.key = key, .kept_head = kept});
  REQUIRE_FALSE(verdict.has_value());
  CHECK(verdict.error().code == Errc::FileCorrupt);
  return verdict.error().detail;
}

/// The verdict about a certificate that must be sound.
inline Verdict sound(const std::string& certificate, const audit::PublicKey& key,
                     const std::optional<std::string>& kept = std::nullopt) {
  const auto verdict = verify::verify(certificate, {.key = key, .kept_head = kept});
  if (!verdict) FAIL(verdict.error().detail);
  return *verdict;
}

}  // namespace leasehold::verify
