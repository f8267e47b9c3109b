/// Answers about the audit chain: whether it is sound, its signed heads, the keys that sign them,
/// and certificates.
///
/// The broker signs; this program computes the rest from the records and checks that they lead to
/// what was signed. Errors: those of the calls; BadRequest from a broker without --state-dir;
/// MalformedMessage; those of tools/verify/certificate_builder.hpp.
#pragma once

#include "tools/brokerctl/run.hpp"

namespace leasehold::brokerctl {

/// Checks the whole chain (audit.hpp).
Result<PrintText> answer(const VerifyAudit& request, Output output,
                         const Dependencies& dependencies);
/// The certificate, or with a file a summary. It is checked as its reader will.
Result<PrintText> answer(const MakeCertificate& request, Output output,
                         const Dependencies& dependencies);
/// The envelope as one line, or nothing with a file.
Result<PrintText> answer(const ShowAuditHead& request, Output output,
                         const Dependencies& dependencies);
/// The newest key as one line; with Output::Wide and Output::Json all keys, the newest first.
Result<PrintText> answer(const SigningKey& request, Output output,
                         const Dependencies& dependencies);

template <class Verb>
concept AnsweredByAudit = requires(const Verb& verb, const Dependencies& dependencies) {
  answer(verb, Output::Table, dependencies);
};

}  // namespace leasehold::brokerctl
