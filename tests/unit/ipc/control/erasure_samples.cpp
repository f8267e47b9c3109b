// Samples of the audit records about leased memory, and of what is signed.
#include "ipc/control/messages/audit/audit_state.hpp"
#include "sample_of.hpp"

namespace leasehold::testing {

std::vector<MessageSample> erasure_samples() {
  using namespace wire;
  const auto with_digests = [](std::string text) {
    while (text.contains("DIGEST")) text = with_digest(std::move(text));
    return text;
  };
  return {
      sample<MemoryGranted>("MemoryGranted", R"({"pool":"kv","adopted_from":"7.1","extents":2,
           "bytes":131072})",
                            {"adopted_from"}),
      sample<MemorySettled>("MemorySettled", R"({"pool":"swap","from":"open","to":"adopted_by",
           "adopted_by":"7.2","extents":2,"bytes":131072})"),
      sample<LeaseGrantedRecord>("LeaseGrantedRecord", R"({"lease":"7.1","scope":"tenant",
           "tenant":"t7","worker":"w0","attachment":"3","adapter_digest":"ab","opens":true,
           "granted":[{"pool":"kv","extents":2,"bytes":131072}],"granted_unix_ms":1})",
                                 {"adapter_digest", "opens"}),
      sample<LeaseErasedRecord>("LeaseErasedRecord", R"({"lease":"7.1","tenant":"t7","worker":"w0",
           "scope":"tenant","adapter_digest":"ab","reason":"released","revoked_unix_ms":1,
           "fenced_unix_ms":2,"proof":"LaunchQuiet","spill_key_destroyed":true,"settled":[
           {"pool":"kv","from":"open","to":"verified_zero","extents":2,"bytes":131072}],
           "open_extents":0,"state":"erased"})",
                                {"worker", "scope", "adapter_digest", "reason", "revoked_unix_ms",
                                 "fenced_unix_ms", "proof", "spill_key_destroyed"}),
      sample<TenantPlace>("TenantPlace", with_digests(R"({"tenant_record":2,
           "tenant_previous":DIGEST,"tenant_previous_unix_ms":1})")),
      sample<AuditGapRecord>("AuditGapRecord", R"({"since_unix_ms":1,"until_unix_ms":2,"grants":1,
           "erasures":0,"leases":["7.1"]})"),
      sample<DsseSignature>("DsseSignature", with_digests(R"({"keyid":DIGEST,"sig":"AA=="})")),
      sample<DsseEnvelope>("DsseEnvelope", with_digests(R"({"payload":"e30=","payloadType":
           "application/vnd.in-toto+json","signatures":[{"keyid":DIGEST,"sig":"AA=="}]})")),
      sample<AuditHeadQuery>("AuditHeadQuery", R"({"tenant":"t7"})", {"tenant"}),
      sample<LeaseCounts>("LeaseCounts", R"({"granted":2,"open":1,"quarantined":0,"held":0,
           "erased":1})"),
      sample<TenantHead>("TenantHead", with_digests(R"({"tenant":"t7","records":4,"hash":DIGEST,
           "unix_ms":1,"leases":{"granted":0,"open":0,"quarantined":0,"held":0,"erased":0}})")),
      sample<AuditHead>("AuditHead", with_digests(R"({"log":DIGEST,"size":12,"root":DIGEST,
           "sequence":14,"hash":DIGEST,"removed_size":3,"removed_sequence":3,
           "first_kept_unix_ms":1,"signed_unix_ms":2,"gaps":1,"waiting":0,
           "tenant":{"tenant":"t7","records":4,"hash":DIGEST,"unix_ms":1,"leases":{"granted":2,
           "open":1,"quarantined":0,"held":0,"erased":1}}})"),
                        {"tenant"}),
      sample<AuditKey>("AuditKey", with_digests(R"({"id":DIGEST,"key":"ed25519:AA==",
           "previous":"","created_unix_ms":1})")),
      sample<AuditKeyQuery>("AuditKeyQuery", "{}"),
      sample<AuditKeys>("AuditKeys", with_digests(R"({"keys":[{"payload":"e30=","payloadType":
           "application/vnd.in-toto+json","signatures":[{"keyid":DIGEST,"sig":"AA=="}]}]})")),
      sample<AuditKeyRotate>("AuditKeyRotate", with_digests(R"({"key":DIGEST})")),
      sample<AuditState>("AuditState", R"({"leases":{"granted":2,"open":1,"quarantined":0,
           "held":0,"erased":1},"gaps":1,"waiting":0,"key_is_unlinked":false})"),
      sample<StatusOfAudit>("StatusOfAudit", R"({"audit":{"leases":{"granted":2,"open":1,
           "quarantined":0,"held":0,"erased":1},"gaps":1,"waiting":0,"key_is_unlinked":false}})",
                            {"audit"}),
  };
}

}  // namespace leasehold::testing
