#include "message_samples.hpp"

#include "ipc/control/messages.hpp"

namespace leasehold::testing {
namespace {

template <class Message>
Result<nlohmann::json> again(const nlohmann::json& json) {
  return TRY(Message::from_json(json)).to_json();
}

constexpr const char* kDigest =
    R"("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")";

std::string with_digest(std::string text) {
  return text.replace(text.find("DIGEST"), 6, kDigest);
}

std::vector<MessageSample> make_samples() {
  using namespace wire;
  return {
      {"TenantAdmit",
       R"({"tenant":"acme","max_concurrent":64,"max_blocks":1048576,"weight":1000,
           "tier":"scavenger","ttl_ms":100,"uid":4294967295,"request_id":"r-1"})",
       {"uid"},
       again<TenantAdmit>},
      {"LeaseRevoke", R"({"lease":"17.4","request_id":"r-1"})", {}, again<LeaseRevoke>},
      {"LeaseDrain",
       R"({"tenant":"acme","grace_ms":86400000,"request_id":"r-1"})",
       {},
       again<LeaseDrain>},
      {"LeasesTouched", R"({"leases":["17.4","0.1"]})", {}, again<LeasesTouched>},
      {"LeaseAcquire",
       R"({"tenant":"acme","blocks":16,"ttl_ms":5000,"worker":"w0","replaces":"17.3",
           "request_id":"r-1"})",
       {"worker", "replaces"},
       again<LeaseAcquire>},
      {"LeaseAcquired",
       R"({"lease":"17.4","token":"v1:17.4:acme:00","address":"/run/w0.sock","worker":"w0",
           "deadline_boottime_ns":9223372036854775807,"ttl_ms":5000,"blocks":64})",
       {},
       again<LeaseAcquired>},
      {"LeaseRenew", R"({"lease":"17.4","request_id":"r-1"})", {}, again<LeaseRenew>},
      {"LeaseRenewed", R"({"deadline_boottime_ns":12})", {}, again<LeaseRenewed>},
      {"LeaseRelease", R"({"lease":"17.4","request_id":"r-1"})", {}, again<LeaseRelease>},
      {"LeaseGrow", R"({"lease":"17.4","extents":1024,"request_id":"r"})", {}, again<LeaseGrow>},
      {"LeaseShrink", R"({"lease":"17.4","extents":1,"request_id":"r"})", {}, again<LeaseShrink>},
      {"LeaseResized", R"({"extents":3,"blocks":192})", {}, again<LeaseResized>},
      {"WorkerAttach", R"({"worker":"w0","request_id":"r-1"})", {}, again<WorkerAttach>},
      {"WorkerAttached",
       with_digest(R"({"worker":"3","slot_count":4096,"token_key":DIGEST})"),
       {},
       again<WorkerAttached>},
      {"WeightsOpen",
       with_digest(R"({"model":"tiny","file_device":1,"file_inode":18446744073709551615,
           "file_size_bytes":7,"file_mtime_ns":-5,"layout_digest":DIGEST,"layout_version":1,
           "size_bytes":4096,"request_id":"r-1"})"),
       {},
       again<WeightsOpen>},
      {"WeightsOpened",
       R"({"region":"18446744073709551615","lease":"2.1","published":true})",
       {},
       again<WeightsOpened>},
      {"WeightsPublish", R"({"region":"0","request_id":"r-1"})", {}, again<WeightsPublish>},
      {"WorkerReady",
       R"({"address":"/run/w0.sock","model":"tiny","kv_block_size_bytes":4096,"request_id":"r"})",
       {},
       again<WorkerReady>},
      {"ExtentShape",
       R"({"extent_size_bytes":2097152,"blocks_per_extent":64})",
       {},
       again<ExtentShape>},
      {"LeaseAttach", R"({"lease":"17.4"})", {}, again<LeaseAttach>},
      {"EventReport", R"({"events":["{}"]})", {}, again<EventReport>},
      {"LeaseGrant",
       R"({"lease":"17.4","tenant":"acme","max_concurrent":2,"max_blocks":128,
           "extent_size_bytes":2097152,"extents":["5","6"]})",
       {},
       again<LeaseGrant>},
      {"LeaseUnmap", R"({"lease":"17.4"})", {}, again<LeaseUnmap>},
      {"LeaseReclaim", R"({"lease":"17.4","count":2})", {}, again<LeaseReclaim>},
      {"ExtentsReclaimed", R"({"extents":["5"]})", {}, again<ExtentsReclaimed>},
      {"Sampling", R"({"temperature":0.5,"seed":18446744073709551615})", {}, again<Sampling>},
      {"Generate",
       R"({"token":"v1:17.4:acme:00","request_id":"r-1","prompt":"Once","emitted":[5,6],
           "rebound_from":"17.3","sampling":{"temperature":1.5,"seed":9},
           "max_emitted_tokens":1048576,"ignore_eos":true,"deadline_ms":1000})",
       {"rebound_from", "deadline_ms"},
       again<Generate>},
      {"Generating", R"({"request":"r-1","prompt_tokens":4})", {}, again<Generating>},
      {"TokenEmitted",
       R"({"request":"r-1","token":2147483647,"position":0,"text":"é"})",
       {},
       again<TokenEmitted>},
      {"RequestCompleted",
       R"({"request":"r-1","reason":"Revoked","emitted_tokens":3,"lease":"17.4","scope":"tenant",
           "revoke_reason":"operator","detail":"by hand"})",
       {"lease"},
       again<RequestCompleted>},
      {"Cancel", R"({"request_id":"r-1"})", {}, again<Cancel>},
      {"RevokeClocks",
       R"({"refuse_ns":1,"error_ns":2,"quiet_ns":3,"reuse_ns":-1})",
       {},
       again<RevokeClocks>},
      {"LeaseView",
       R"({"lease":"17.4","scope":"engine","tenant":"","worker":"w0","state":"Fenced",
           "reason":"machine_restarted","proof":"LaunchQuiet","extents":2,"size_bytes":4194304,
           "deadline_boottime_ns":-1,"replaced_by":"18.1",
           "clocks":{"refuse_ns":1,"error_ns":2,"quiet_ns":3,"reuse_ns":4}})",
       {"replaced_by"},
       again<LeaseView>},
      {"ExtentView",
       R"({"extent":"5","state":"Owned","lease":"17.4","size_bytes":2097152,"inode":77})",
       {"lease"},
       again<ExtentView>},
      {"WorkerView",
       R"({"worker":"w0","id":"0","pid":123,"state":"ready","model":"tiny","address":"/run/w",
           "leases":2,"revocations":5})",
       {},
       again<WorkerView>},
      {"TenantView",
       R"({"policy":{"tenant":"acme","max_concurrent":1,"max_blocks":1,"weight":1,
           "tier":"guaranteed","ttl_ms":86400000},"leases_live":1,"blocks_held":64})",
       {},
       again<TenantView>},
      {"StatusView",
       R"({"capacity_bytes":21,"free_bytes":1,"owned_bytes":2,"draining_bytes":3,
           "scrubbing_bytes":4,"retained_bytes":5,"quarantined_bytes":6,"leases_live":1,
           "leases_revoked":2,"leases_fenced":3,"workers":1,"tenants":2,"isolation":"same-user",
           "uptime_ms":9})",
       {},
       again<StatusView>},
  };
}

std::vector<OutOfRange> make_out_of_range() {
  const std::string long_path = '"' + std::string(108, 'p') + '"';
  const std::string long_name = '"' + std::string(65, 'n') + '"';
  return {
      {"TenantAdmit", "/tenant", R"("")", "tenant"},
      {"TenantAdmit", "/tenant", R"("a/b")", "tenant"},
      {"TenantAdmit", "/tenant", long_name, "tenant"},
      {"TenantAdmit", "/max_concurrent", "0", "max_concurrent"},
      {"TenantAdmit", "/max_concurrent", "65", "max_concurrent"},
      {"TenantAdmit", "/max_blocks", "0", "max_blocks"},
      {"TenantAdmit", "/max_blocks", "1048577", "max_blocks"},
      {"TenantAdmit", "/weight", "0", "weight"},
      {"TenantAdmit", "/weight", "1001", "weight"},
      {"TenantAdmit", "/weight", "4294967297", "weight"},
      {"TenantAdmit", "/weight", "-1", "weight"},
      {"TenantAdmit", "/weight", "18446744073709551617", "weight"},
      {"TenantAdmit", "/tier", R"("gold")", "tier"},
      {"TenantAdmit", "/ttl_ms", "99", "ttl_ms"},
      {"TenantAdmit", "/ttl_ms", "86400001", "ttl_ms"},
      {"TenantAdmit", "/ttl_ms", "18446744073709551615", "ttl_ms"},
      {"TenantAdmit", "/uid", "4294967296", "uid"},
      {"TenantAdmit", "/uid", "-1", "uid"},
      {"LeaseRevoke", "/lease", R"("17.0")", "lease"},
      {"LeaseRevoke", "/lease", R"("17.281474976710656")", "lease"},
      {"LeaseRevoke", "/lease", R"("4294967296.1")", "lease"},
      {"LeaseRevoke", "/lease", R"("17")", "lease"},
      {"LeaseDrain", "/grace_ms", "-1", "grace_ms"},
      {"LeaseDrain", "/grace_ms", "86400001", "grace_ms"},
      {"LeasesTouched", "/leases/1", R"("x")", "leases[1]"},
      {"LeaseAcquire", "/blocks", "1048577", "blocks"},
      {"LeaseAcquire", "/ttl_ms", "-1", "ttl_ms"},
      {"LeaseAcquire", "/worker", R"("w 0")", "worker"},
      {"LeaseAcquired", "/address", R"("")", "address"},
      {"LeaseAcquired", "/address", long_path, "address"},
      {"LeaseAcquired", "/address", R"("a\u0000b")", "address"},
      {"LeaseAcquired", "/token", R"("")", "token"},
      {"LeaseAcquired", "/deadline_boottime_ns", "-1", "deadline_boottime_ns"},
      {"LeaseGrow", "/extents", "0", "extents"},
      {"LeaseGrow", "/extents", "1025", "extents"},
      {"LeaseShrink", "/extents", "0", "extents"},
      {"WorkerAttach", "/worker", R"("../w")", "worker"},
      {"WorkerAttached", "/token_key", R"("00")", "token_key"},
      {"WorkerAttached", "/worker", R"("03")", "worker"},
      {"WorkerAttached", "/worker", R"("-3")", "worker"},
      {"WorkerAttached", "/worker", R"("18446744073709551616")", "worker"},
      {"WeightsOpen", "/layout_digest", R"("xyz")", "layout_digest"},
      {"WeightsOpen", "/size_bytes", "0", "size_bytes"},
      {"WeightsOpen", "/file_inode", "-1", "file_inode"},
      {"ExtentShape", "/blocks_per_extent", "0", "blocks_per_extent"},
      {"LeaseGrant", "/extents/0", "5", "extents[0]"},
      {"LeaseReclaim", "/count", "0", "count"},
      {"Sampling", "/temperature", "-0.5", "temperature"},
      {"Sampling", "/temperature", "100.5", "temperature"},
      {"Sampling", "/temperature", "1e300", "temperature"},
      {"Generate", "/sampling/temperature", "1e39", "sampling.temperature"},
      {"Generate", "/sampling/seed", "-1", "sampling.seed"},
      {"Generate", "/max_emitted_tokens", "0", "max_emitted_tokens"},
      {"Generate", "/max_emitted_tokens", "1048577", "max_emitted_tokens"},
      {"Generate", "/emitted/1", "-1", "emitted[1]"},
      {"Generate", "/emitted/1", "2147483648", "emitted[1]"},
      {"Generate", "/deadline_ms", "-1", "deadline_ms"},
      {"RequestCompleted", "/scope", R"("planet")", "scope"},
      {"RequestCompleted", "/revoke_reason", R"("mood")", "revoke_reason"},
      {"RequestCompleted", "/reason", R"("")", "reason"},
      {"RevokeClocks", "/refuse_ns", "-2", "refuse_ns"},
      {"LeaseView", "/state", R"("live")", "state"},
      {"LeaseView", "/reason", R"("unknown")", "reason"},
      {"LeaseView", "/scope", R"("Engine")", "scope"},
      {"LeaseView", "/clocks/reuse_ns", "-2", "clocks.reuse_ns"},
      {"WorkerView", "/state", R"("asleep")", "state"},
      {"TenantView", "/policy/weight", "0", "policy.weight"},
      {"StatusView", "/isolation", R"("")", "isolation"},
  };
}

}  // namespace

const std::vector<MessageSample>& message_samples() {
  static const auto samples = make_samples();
  return samples;
}

const std::vector<OutOfRange>& out_of_range_samples() {
  static const auto samples = make_out_of_range();
  return samples;
}

}  // namespace leasehold::testing
