// Worker → agent of a cell.
#include "ipc/control/messages/cell/key_resolve.hpp"

#include "ipc/control/messages/codec.hpp"

namespace leasehold::wire {

void describe(Is<KeyResolve> auto& m, auto& fields) {
  fields.field("hash", m.hash, TextRule::HexKey);
}

template struct Message<KeyResolve>;

}  // namespace leasehold::wire
