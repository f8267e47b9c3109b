#include "ipc/control/messages/adapters/adapters_yield.hpp"
#include "ipc/control/messages/waits/lease_wait.hpp"
#include "sample_of.hpp"

namespace leasehold::testing {

std::vector<MessageSample> adapter_samples() {
  using namespace wire;
  return {
      sample<AdapterAdd>("AdapterAdd",
                         R"({"adapter":"support","file":"acme/support.gguf","tenant":"acme",
           "pinned":true,"request_id":"r-1"})",
                         {"pinned"}),
      sample<AdapterAdd>(
          "AdapterAdd of a shared one",
          R"({"adapter":"tone","file":"tone","shared":true,"pinned":true,"request_id":"r-1"})",
          {"pinned"}),
      sample<AdapterAdded>("AdapterAdded", R"({"version":4294967295})"),
      sample<AdapterRemove>("AdapterRemove", R"({"adapter":"support","request_id":"r-1"})"),
      sample<AdapterLoad>(
          "AdapterLoad",
          R"({"adapter":"support","worker":"w0","tenant":"acme","request_id":"r-1"})", {"tenant"}),
      sample<AdapterUnload>("AdapterUnload",
                            R"({"adapter":"support","worker":"w0","request_id":"r-1"})"),
      sample<AdapterList>("AdapterList", R"({"tenant":"acme","after":"support","limit":7})",
                          {"tenant", "after", "limit"}),
      sample<AdapterView>(
          "AdapterView",
          with_digest(R"({"adapter":"support","version":2,"tenant":"acme","file":"support.gguf",
           "pinned":true,"digest":DIGEST,"removed":true,"leases":[{"lease":"17.4","worker":"w0","version":1,
           "state":"Live","filled":true,"size_bytes":18446744073709551615}]})"),
          {"tenant", "digest", "removed"}),
      sample<AdapterResolve>("AdapterResolve", R"({"tenant":"acme","adapter":"support"})",
                             {"tenant"}),
      sample<AdapterResolved>(
          "AdapterResolved",
          with_digest(R"({"adapter":"support","version":2,"file":"support.gguf","tenant":"acme",
           "pinned":true,"digest":DIGEST})"),
          {"tenant", "digest"}),
      sample<AdapterVisible>("AdapterVisible", R"({"tenant":"acme"})"),
      sample<AdaptersVisible>("AdaptersVisible",
                              R"({"adapters":[{"adapter":"support","version":2}]})"),
      sample<AdapterOpen>(
          "AdapterOpen",
          with_digest(R"({"tenant":"acme","adapter":"support","version":2,"digest":DIGEST,
           "size_bytes":18446744073709551615,"request_id":"r-1"})"),
          {"tenant"}),
      sample<AdapterOpened>("AdapterOpened", R"({"lease":"17.4"})"),
      sample<AdapterFilled>("AdapterFilled", R"({"lease":"17.4"})"),
      sample<AdapterClose>("AdapterClose", R"({"lease":"17.4"})"),
      sample<AdaptersYield>(
          "AdaptersYield",
          R"({"tenant":"acme","leases":["17.4"],"size_bytes":18446744073709551615})"),
      sample<LeaseGrant>("LeaseGrant of an adapter",
                         R"({"lease":"3.1","tenant":"","extent_size_bytes":2097152,"extents":["5"],
           "scope":"adapter","adapter":"support","adapter_version":2})"),
      sample<LeaseRevoke>("LeaseRevoke of an adapter",
                          R"({"adapter":"support","request_id":"r-1"})"),
      sample<TenantAdmit>("TenantAdmit with adapters",
                          R"({"tenant":"acme","max_adapters":64,
           "max_adapter_bytes":1125899906842624,"request_id":"r-1"})",
                          {"max_adapters", "max_adapter_bytes"}),
      sample<RequestSubmit>(
          "RequestSubmit with an adapter",
          with_digest(
              R"({"token":"v1:17.4:acme:00","request_id":"r-1","prompt":"Once","adapter":"support",
           "adapter_digest":DIGEST,"emitted":[],"sampling":{"temperature":1.5,"seed":9},
           "max_emitted_tokens":3,"ignore_eos":true})"),
          {"adapter", "adapter_digest"}),
      sample<RequestSubmitted>(
          "RequestSubmitted with an adapter",
          with_digest(R"({"request":"r-1","prompt_tokens":4,"adapter_digest":DIGEST})"),
          {"adapter_digest"}),
      sample<LeaseWait>(
          "LeaseWait",
          R"({"leases":["17.4","0.1"],"worker":"w0","until_free":true,"timeout_ms":250})",
          {"worker", "until_free"}),
      sample<HostMemoryInUse>("HostMemoryInUse", R"({"touched_bytes":18446744073709551615})",
                              {"touched_bytes"}),
      sample<LeasesWaited>(
          "LeasesWaited",
          R"({"items":[{"lease":"17.4","scope":"tenant","tenant":"acme","model":"","part":"","worker":"w0","state":"Fenced",
           "reason":"operator","proof":"","extents":1,"blocks":8,"size_bytes":2097152,"swap_bytes":0,
           "quarantined_extents":0,"drain_deadline_boottime_ns":0,"deadline_boottime_ns":9,
           "clocks":{},"times":{"granted_boottime_ns":1,"revoked_boottime_ns":2,
           "fenced_boottime_ns":0,"rebound_boottime_ns":0,"worker_stopped_boottime_ns":0}}],"open":2,"oldest_open":{"lease":"17.4","scope":"tenant","tenant":"acme","model":"","part":"","worker":"w0","state":"Revoked",
           "reason":"operator","proof":"","extents":1,"blocks":8,"size_bytes":2097152,"swap_bytes":0,
           "quarantined_extents":0,"drain_deadline_boottime_ns":0,"deadline_boottime_ns":9,
           "clocks":{},"times":{"granted_boottime_ns":1,"revoked_boottime_ns":2,
           "fenced_boottime_ns":0,"rebound_boottime_ns":0,"worker_stopped_boottime_ns":0}}})",
          {"oldest_open"}),
  };
}

}  // namespace leasehold::testing
