// Worker → agent of a cell.
#include "ipc/control/messages/cell/agent_calls.hpp"

#include "ipc/control/messages/codec.hpp"

namespace leasehold::wire {

void describe(Is<KeyResolve> auto& m, auto& fields) {
  fields.field("hash", m.hash, TextRule::HexKey);
  fields.field("moved_from", m.moved_from);
}

void describe(Is<PartWant> auto& m, auto& fields) {
  fields.field("tenant", m.tenant);
  fields.field("moved_from", m.moved_from);
}

template struct Message<KeyResolve>;
template struct Message<PartWant>;

}  // namespace leasehold::wire
