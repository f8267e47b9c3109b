#include "broker/decide/worker/admission.hpp"

namespace leasehold {

void send_admission(Decision& decision, const Worker& worker) {
  if (worker.state != WorkerState::Ready) return;
  decision.add(effect::SendAdmission{worker.id, {.admits = worker.is_admitting()}});
}

}  // namespace leasehold
