#include "broker/books/pending_calls.hpp"

#include <utility>

namespace leasehold {

std::vector<CallId> PendingCalls::take_callers() {
  std::vector<CallId> callers;
  for (const PendingGrant& grant : grants) callers.push_back(grant.call);
  callers.insert(callers.end(), shrinks.begin(), shrinks.end());
  if (open) callers.push_back(*open);
  grants.clear();
  shrinks.clear();
  open.reset();
  return callers;
}

}  // namespace leasehold
