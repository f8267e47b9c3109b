// Adapters.
#include "ipc/control/messages/adapters/adapters.hpp"
#include "ipc/control/messages/adapters/adapters_yield.hpp"

#include "ipc/control/messages/codec.hpp"
#include "ipc/control/messages/limits.hpp"

namespace leasehold::wire {
namespace {

constexpr Between<std::uint32_t> kVersion{1};

}  // namespace

void describe(Is<AdapterAdd> auto& m, auto& fields) {
  fields.field("adapter", m.adapter);
  fields.field("file", m.file, TextRule::RelativePath);
  fields.field("tenant", m.tenant);
  fields.with_default("shared", m.shared, false);
  fields.with_default("pinned", m.pinned, false);
  fields.field("request_id", m.request_id);
}

static Result<void> validate(const AdapterAdd& m) {
  return exactly_one("'tenant' and 'shared'", {m.tenant.has_value(), m.shared});
}

void describe(Is<AdapterAdded> auto& m, auto& fields) {
  fields.field("version", m.version, kVersion);
}

void describe(Is<AdapterRemove> auto& m, auto& fields) {
  fields.field("adapter", m.adapter);
  fields.field("request_id", m.request_id);
}

void describe(Is<AdapterLoad> auto& m, auto& fields) {
  fields.field("adapter", m.adapter);
  fields.field("worker", m.worker, TextRule::Name);
  fields.field("tenant", m.tenant);
  fields.field("request_id", m.request_id);
}

void describe(Is<AdapterUnload> auto& m, auto& fields) {
  fields.field("adapter", m.adapter);
  fields.field("worker", m.worker, TextRule::Name);
  fields.field("request_id", m.request_id);
}

void describe(Is<AdapterList> auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
  fields.field("after", m.after);
  fields.with_default("limit", m.limit, kPageItems.high, kPageItems);
}

void describe(Is<AdapterLeaseView> auto& m, auto& fields) {
  fields.field("lease", m.lease);
  fields.field("worker", m.worker, TextRule::Name);
  fields.field("version", m.version, kVersion);
  fields.field("state", m.state, EnumCount{4});
  fields.field("filled", m.filled);
  fields.field("size_bytes", m.size_bytes);
}

void describe(Is<AdapterView> auto& m, auto& fields) {
  fields.field("adapter", m.adapter);
  fields.field("version", m.version, kVersion);
  fields.field("tenant", m.tenant);
  fields.field("file", m.file, TextRule::RelativePath);
  fields.field("pinned", m.pinned);
  fields.field("digest", m.digest, TextRule::HexKey);
  fields.with_default("removed", m.removed, false);
  fields.field("leases", m.leases);
}

void describe(Is<AdapterResolve> auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
  fields.field("adapter", m.adapter);
}

void describe(Is<AdapterResolved> auto& m, auto& fields) {
  fields.field("adapter", m.adapter);
  fields.field("version", m.version, kVersion);
  fields.field("file", m.file, TextRule::RelativePath);
  fields.field("tenant", m.tenant);
  fields.field("pinned", m.pinned);
  fields.field("digest", m.digest, TextRule::HexKey);
}

void describe(Is<AdapterVisible> auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
}

void describe(Is<VisibleAdapter> auto& m, auto& fields) {
  fields.field("adapter", m.adapter);
  fields.field("version", m.version, kVersion);
}

void describe(Is<AdaptersVisible> auto& m, auto& fields) {
  fields.field("adapters", m.adapters, MaxItems{2 * kMaxAdaptersPerOwner});
}

void describe(Is<AdapterOpen> auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
  fields.field("adapter", m.adapter);
  fields.field("version", m.version, kVersion);
  fields.field("digest", m.digest, TextRule::HexKey);
  fields.field("size_bytes", m.size_bytes, kPositiveBytes);
  fields.field("request_id", m.request_id);
}

void describe(Is<AdapterOpened, AdapterFilled, AdapterClose> auto& m, auto& fields) {
  fields.field("lease", m.lease);
}

void describe(Is<AdaptersYield> auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
  fields.field("leases", m.leases, MaxItems{AdaptersYield::kMaxLeases});
  fields.field("size_bytes", m.size_bytes, kPositiveBytes);
}

template struct Message<AdapterAdd>;
template struct Message<AdapterAdded>;
template struct Message<AdapterRemove>;
template struct Message<AdapterLoad>;
template struct Message<AdapterUnload>;
template struct Message<AdapterList>;
template struct Message<AdapterView>;
template struct Message<AdapterResolve>;
template struct Message<AdapterResolved>;
template struct Message<AdapterVisible>;
template struct Message<AdaptersVisible>;
template struct Message<AdapterOpen>;
template struct Message<AdapterOpened>;
template struct Message<AdapterFilled>;
template struct Message<AdapterClose>;
template struct Message<AdaptersYield>;

}  // namespace leasehold::wire
