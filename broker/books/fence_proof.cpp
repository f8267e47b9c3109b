#include "broker/books/fence_proof.hpp"

namespace leasehold {

std::string_view name(const FenceProof& proof) {
  constexpr std::string_view kNames[] = {"LaunchQuiet", "WorkerAck", "ProcessExit", "NeverMapped",
                                         "MachineRestart"};
  return kNames[proof.index()];
}

bool covers(const FenceProof& proof, LeaseId lease, AttachmentId worker) {
  if (const auto* exit = std::get_if<ProcessExit>(&proof)) return exit->worker() == worker;
  if (std::holds_alternative<MachineRestart>(proof)) return true;
  return std::visit(
      [lease](const auto& each) {
        if constexpr (requires { each.lease(); }) return each.lease() == lease;
        return false;
      },
      proof);
}

}  // namespace leasehold
