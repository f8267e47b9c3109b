// Agent of a cell → broker.
#include "ipc/control/messages/cell/cell.hpp"

#include "ipc/control/messages/cell/cell_part.hpp"
#include "ipc/control/messages/codec.hpp"
#include "ipc/control/messages/limits.hpp"
#include "ipc/control/messages/tenant_policy.hpp"

namespace leasehold::wire {
namespace {

constexpr Between<std::uint64_t> kFromOne{1, std::numeric_limits<std::uint64_t>::max()};

}  // namespace

void describe(Is<CellAttach> auto& m, auto& fields) {
  fields.field("cell", m.cell);
}

void describe(Is<CellAttached, CellCeiling> auto& m, auto& fields) {
  fields.field("incarnation", m.incarnation);
  fields.field("ceiling_boottime_ns", m.ceiling_boottime_ns, kBoottime_ns);
}

void describe(Is<CellAdmit> auto& m, auto& fields) {
  fields.object("policy", m.policy, kTenantPolicy);
  fields.field("incarnation", m.incarnation, kFromOne);
  fields.field("revision", m.revision, kFromOne);
  fields.field("first_credit_ms", m.first_credit_ms, Between<std::uint32_t>{0, 60'000});
}

void describe(Is<CellPartChanged> auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
  fields.field("part", m.part);
  fields.field("blocks_held", m.blocks_held);
}

static Result<void> validate(const CellAdmit& admit) {
  if (admit.policy.cell) return {};
  return fail(Errc::BadRequest, "field 'policy.cell' is missing; name the cell of the tenant");
}

template struct Message<CellAttach>;
template struct Message<CellAttached>;
template struct Message<CellCeiling>;
template struct Message<CellAdmit>;
template struct Message<CellPart>;
template struct Message<CellPartChanged>;

}  // namespace leasehold::wire
