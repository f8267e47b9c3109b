/// A draft model beside an EngineRig, with memory and leases as the broker lends them.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "ipc/table/table_reader.hpp"
#include "tests/support/engine_rig.hpp"
#include "worker/engine/propose/draft_proposer.hpp"

namespace leasehold::testing {

class RigDraft {
 public:
  /// `context` 0: the model's.
  RigDraft(const std::string& path, std::uint32_t context, const RigOptions& options);

  const DraftProposer::Config& config() const { return config_; }

  enum Lease { OfWeights, OfMemory };
  /// Reads the weights, and makes the proposer under these leases.
  std::shared_ptr<DraftProposer> load(DraftProposer::Dependencies dependencies,
                                      const TableReader& table, std::array<LeaseId, 2> leases);
  LeaseId lease(Lease which) const { return leases_[which]; }
  DraftProposer& proposer() { return *proposer_; }
  /// How often the proposer reported that it lost a lease, and the last one.
  int losses() const { return losses_; }
  LeaseId lost() const { return lost_; }
  /// The bytes of its keys and values, through a mapping of the broker.
  std::vector<std::byte> memory() const;

 private:
  GgufFile file_;
  DraftProposer::Config config_;
  WeightsPlan plan_;
  std::array<LeaseId, 2> leases_;
  MemoryObject weights_memory_;
  MemoryObject memory_;
  std::shared_ptr<DraftProposer> proposer_;
  int losses_ = 0;
  LeaseId lost_;
};

}  // namespace leasehold::testing
