#include "broker/recovery/recovery_observer.hpp"

namespace leasehold {

std::optional<MachineRestart> RecoveryObserver::observe(std::string_view journaled_boot_id,
                                                        std::string_view running_boot_id) {
  if (journaled_boot_id.empty() || journaled_boot_id == running_boot_id) return std::nullopt;
  return MachineRestart();
}

FenceProof RecoveryObserver::recorded(std::string_view proof_name, LeaseId lease,
                                      AttachmentId worker) {
  const FenceProof kinds[] = {WorkerAck(lease), ProcessExit(worker), NeverMapped(lease),
                              MachineRestart()};
  for (const FenceProof& proof : kinds) {
    if (name(proof) == proof_name) return proof;
  }
  return LaunchQuiet(lease);
}

}  // namespace leasehold
