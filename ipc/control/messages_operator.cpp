// Operator → broker: admit, revoke, drain.
#include "ipc/control/messages_operator.hpp"

#include <fmt/format.h>

#include "ipc/control/message_limits.hpp"
#include "ipc/control/tenant_policy.hpp"

namespace leasehold::wire {
namespace {

constexpr auto kTenantAdmit = [](auto& m, auto& fields) {
  kTenantPolicy(m, fields);
  fields.field("request_id", m.request_id);
};

constexpr auto kTarget = [](auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("tenant", m.tenant);
  fields.field("request_id", m.request_id);
};

constexpr auto kLeaseRevoke = [](auto& m, auto& fields) {
  kTarget(m, fields);
  fields.field("part", m.part, TextRule::Sentence);
  fields.field("worker", m.worker, TextRule::Name);
};

constexpr auto kLeaseDrain = [](auto& m, auto& fields) {
  kTarget(m, fields);
  fields.field("grace_ms", m.grace_ms, kUpToOneDay_ms);
};

constexpr auto kExtentOpen = [](auto& m, auto& fields) { fields.field("extent", m.extent); };

constexpr auto kQuarantineRelease = [](auto& m, auto& fields) {
  fields.field("extent", m.extent);
  fields.field("region", m.region);
  fields.field("reason", m.reason, TextRule::Sentence);
  fields.field("request_id", m.request_id);
};

constexpr auto kQuarantineReleased = [](auto& m, auto& fields) {
  fields.field("size_bytes", m.size_bytes);
};

constexpr auto kLeasesTouched = [](auto& m, auto& fields) { fields.field("leases", m.leases); };

constexpr auto kLimit = [](auto& m, auto& fields) {
  fields.with_default("limit", m.limit, kPageItems.high, kPageItems);
};

/// Of tenants and of extents.
constexpr auto kPlainList = [](auto& m, auto& fields) {
  fields.field("after", m.after);
  kLimit(m, fields);
};

constexpr auto kQuarantineList = [](auto& m, auto& fields) {
  fields.field("after_extent", m.after_extent);
  fields.field("after_region", m.after_region);
  kLimit(m, fields);
};

/// Two or none would leave it to luck what is taken back.
Result<void> check_one_target(std::string_view targets, int named) {
  if (named == 1) return {};
  return fail(Errc::BadRequest, fmt::format("expected exactly one of {}, got {}", targets, named));
}

}  // namespace

std::string_view name(LeaseScope scope) {
  return scope == LeaseScope::Engine ? "engine" : "tenant";
}

std::string_view name(Tier tier) {
  switch (tier) {
    case Tier::Guaranteed:
      return "guaranteed";
    case Tier::Standard:
      return "standard";
    case Tier::Scavenger:
      return "scavenger";
  }
  std::unreachable();
}

Json Empty::to_json() const {
  return Json::object();
}
Result<Empty> Empty::from_json(const Json& json) {
  return read_fields<Empty>(json, [](auto&, auto&) {});
}

Json TenantAdmit::to_json() const {
  return write_fields(*this, kTenantAdmit);
}
Result<TenantAdmit> TenantAdmit::from_json(const Json& json) {
  return read_fields<TenantAdmit>(json, kTenantAdmit);
}

Json LeaseRevoke::to_json() const {
  return write_fields(*this, kLeaseRevoke);
}
Result<LeaseRevoke> LeaseRevoke::from_json(const Json& json) {
  auto message = TRY(read_fields<LeaseRevoke>(json, kLeaseRevoke));
  const bool part = message.part.has_value();
  TRY(check_one_target("'lease', 'tenant' and 'part'",
                       message.lease.has_value() + message.tenant.has_value() + part));
  if (message.worker && !part) {
    return fail(Errc::BadRequest, "'worker' goes with 'part': a lease is on one worker anyway");
  }
  return message;
}

Json LeaseDrain::to_json() const {
  return write_fields(*this, kLeaseDrain);
}
Result<LeaseDrain> LeaseDrain::from_json(const Json& json) {
  auto message = TRY(read_fields<LeaseDrain>(json, kLeaseDrain));
  TRY(check_one_target("'lease' and 'tenant'",
                       message.lease.has_value() + message.tenant.has_value()));
  return message;
}

Json ExtentOpen::to_json() const {
  return write_fields(*this, kExtentOpen);
}
Result<ExtentOpen> ExtentOpen::from_json(const Json& json) {
  return read_fields<ExtentOpen>(json, kExtentOpen);
}

Json QuarantineRelease::to_json() const {
  return write_fields(*this, kQuarantineRelease);
}
Result<QuarantineRelease> QuarantineRelease::from_json(const Json& json) {
  auto message = read_fields<QuarantineRelease>(json, kQuarantineRelease);
  if (message && message->extent.has_value() == message->region.has_value()) {
    return fail(Errc::BadRequest, "expected exactly one of 'extent' and 'region'");
  }
  return message;
}

Json QuarantineReleased::to_json() const {
  return write_fields(*this, kQuarantineReleased);
}
Result<QuarantineReleased> QuarantineReleased::from_json(const Json& json) {
  return read_fields<QuarantineReleased>(json, kQuarantineReleased);
}

Json TenantList::to_json() const {
  return write_fields(*this, kPlainList);
}
Result<TenantList> TenantList::from_json(const Json& json) {
  return read_fields<TenantList>(json, kPlainList);
}

Json ExtentList::to_json() const {
  return write_fields(*this, kPlainList);
}
Result<ExtentList> ExtentList::from_json(const Json& json) {
  return read_fields<ExtentList>(json, kPlainList);
}

Json QuarantineList::to_json() const {
  return write_fields(*this, kQuarantineList);
}
Result<QuarantineList> QuarantineList::from_json(const Json& json) {
  auto message = read_fields<QuarantineList>(json, kQuarantineList);
  if (message && message->after_extent && message->after_region) {
    return fail(Errc::BadRequest, "expected at most one of 'after_extent' and 'after_region'");
  }
  return message;
}

Json LeasesTouched::to_json() const {
  return write_fields(*this, kLeasesTouched);
}
Result<LeasesTouched> LeasesTouched::from_json(const Json& json) {
  return read_fields<LeasesTouched>(json, kLeasesTouched);
}

}  // namespace leasehold::wire
