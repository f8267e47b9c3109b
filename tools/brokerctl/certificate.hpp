/// Signed heads of the audit chain, the keys that sign them, and certificates made of both.
///
/// The broker signs; this program computes the rest from the records and checks that they lead to
/// what was signed. Errors: those of the calls; BadRequest from a broker without --state-dir;
/// MalformedMessage; those of tools/verify/certificate_builder.hpp.
#pragma once

#include <string>

#include "tools/brokerctl/run.hpp"
#include "tools/cli/table.hpp"
#include "tools/verify/verify.hpp"

namespace leasehold::brokerctl {

/// The envelope as one line.
Result<std::string> read_audit_head(const Dependencies& dependencies);

/// Makes a certificate and checks it as its reader will.
struct MadeCertificate {
  std::string text;
  verify::Verdict verdict;
};
Result<MadeCertificate> make_certificate(const MakeCertificate& request,
                                         const Dependencies& dependencies);
wire::Json certificate_json(const MadeCertificate& made);
cli::Table certificate_table(const MadeCertificate& made);

struct SigningKeys {
  audit::KeyLinks links;
  wire::AuditKeys message;
};
Result<SigningKeys> read_signing_keys(const Dependencies& dependencies);
/// Replaces the newest key.
Result<SigningKeys> rotate_signing_key(const Dependencies& dependencies);
wire::Json signing_keys_json(const SigningKeys& keys);
/// The newest first.
cli::Table signing_keys_table(const SigningKeys& keys);

}  // namespace leasehold::brokerctl
