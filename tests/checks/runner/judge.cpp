#include "tests/checks/runner/judge_case.hpp"

namespace leasehold::runner {

std::vector<Check> judge(const Record& record) {
  Case all{.record = record, .instances = {}};
  for (const BrokerInstance& broker : record.brokers) all.instances.push_back(lease_traces(broker));
  std::vector<Check> checks;
  judge_leases(all, checks);
  judge_holders(all, checks);
  judge_sharing(all, checks);
  judge_memory(all, checks);
  return checks;
}

}  // namespace leasehold::runner
