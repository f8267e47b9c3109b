#include "broker/books/fence_proof.hpp"

namespace leasehold {
namespace {

struct Name {
  std::string_view operator()(const LaunchQuiet&) const { return "LaunchQuiet"; }
  std::string_view operator()(const WorkerAck&) const { return "WorkerAck"; }
  std::string_view operator()(const ProcessExit&) const { return "ProcessExit"; }
  std::string_view operator()(const NeverMapped&) const { return "NeverMapped"; }
  std::string_view operator()(const MachineRestart&) const { return "MachineRestart"; }
};

struct Covers {
  LeaseId lease;
  AttachmentId worker;
  bool operator()(const LaunchQuiet& proof) const { return proof.lease() == lease; }
  bool operator()(const WorkerAck& proof) const { return proof.lease() == lease; }
  bool operator()(const ProcessExit& proof) const { return proof.worker() == worker; }
  bool operator()(const NeverMapped& proof) const { return proof.lease() == lease; }
  bool operator()(const MachineRestart&) const { return true; }
};

}  // namespace

std::string_view name(const FenceProof& proof) {
  return std::visit(Name{}, proof);
}

bool covers(const FenceProof& proof, LeaseId lease, AttachmentId worker) {
  return std::visit(Covers{lease, worker}, proof);
}

}  // namespace leasehold
