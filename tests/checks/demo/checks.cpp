#include "tests/checks/demo/checks.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/checks/demo/check_groups.hpp"

namespace leasehold::demo {

std::vector<Check> judge(const Observation& seen) {
  std::vector<Check> checks;
  check_texts(seen, checks);
  check_recovery(seen, checks);
  check_answers(seen, checks);
  check_leases(seen, checks);
  check_events(seen, checks);
  check_memory(seen, checks);
  return checks;
}

bool all_ok(const std::vector<Check>& checks) {
  return !checks.empty() && std::ranges::all_of(checks, &Check::ok);
}

}  // namespace leasehold::demo
