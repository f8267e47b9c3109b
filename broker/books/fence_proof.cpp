#include "broker/books/fence_proof.hpp"

#include <iterator>

namespace leasehold {

std::string_view name(const FenceProof& proof) {
  constexpr std::string_view kNames[] = {"LaunchQuiet", "WorkerAck", "ProcessExit", "NeverMapped",
                                         "MachineRestart"};
  static_assert(std::size(kNames) == std::variant_size_v<FenceProof>);
  return kNames[proof.index()];
}

bool covers(const FenceProof& proof, LeaseId lease, AttachmentId worker) {
  if (const auto* exit = std::get_if<ProcessExit>(&proof)) return exit->worker() == worker;
  if (std::holds_alternative<MachineRestart>(proof)) return true;
  if (const auto* quiet = std::get_if<LaunchQuiet>(&proof)) return quiet->lease() == lease;
  if (const auto* ack = std::get_if<WorkerAck>(&proof)) return ack->lease() == lease;
  return std::get<NeverMapped>(proof).lease() == lease;
}

}  // namespace leasehold
