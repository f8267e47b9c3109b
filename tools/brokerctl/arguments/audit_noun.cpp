// `brokerctl audit`.
#include "common/cli/number_option.hpp"
#include "common/cli/parse_check.hpp"
#include "tools/brokerctl/arguments/commands.hpp"
#include "tools/brokerctl/audit.hpp"

namespace leasehold::brokerctl {
namespace {

/// The values of the commands of `audit`.
struct AuditValues {
  std::string since, tenant, kept_head, file;
  bool is_shared = false;
};

void add_since(CLI::App& verb, AuditValues& values, const std::string& what) {
  verb.add_option("--since", values.since,
                  what + " from this time on, in UTC, such as 2026-11-24 or 2026-11-24T18:30:00Z")
      ->check(checked(parse_utc_ms));
}

void add_export(Commands& commands, CLI::App& noun, const std::shared_ptr<AuditValues>& values) {
  auto* all = commands.add_verb(
      noun,
      {"export", "All records as JSON lines, oldest first",
       "brokerctl audit export >audit.jsonl\nbrokerctl audit export --since 2026-11-24 --tenant "
       "alice"},
      [values]() -> Result<Verb> {
        ExportAudit request;
        if (!values->since.empty()) request.since_unix_ms = TRY(parse_utc_ms(values->since));
        request.tenant = TRY(parse_optional<TenantId>(values->tenant));
        return request;
      });
  add_since(*all, *values, "Only records");
  add_name(*all, "--tenant", values->tenant, "Only records of this tenant");
}

/// `-o` names a file here: the answer has one format only.
void add_file(CLI::App& verb, AuditValues& values) {
  verb.add_option("-o,--output", values.file, "File to write; default: print to stdout")
      ->check(check_file_path);
}

void add_certificate(Commands& commands, CLI::App& noun,
                     const std::shared_ptr<AuditValues>& values) {
  auto* verb = commands.add_verb(
      noun,
      {"certificate",
       "Write a certificate of what became of the memory of a tenant's leases, for "
       "leasehold-verify",
       "brokerctl audit certificate --tenant t7 --since 2026-11-01 -o t7.json\nbrokerctl audit "
       "certificate --tenant t7 --since 2026-11-01 --head head.json -o t7.json"},
      [values]() -> Result<Verb> {
        MakeCertificate request;
        if (values->is_shared != values->tenant.empty())
          return fail(Errc::BadRequest, "expected exactly one of --tenant and --shared");
        request.tenant = values->tenant;
        if (!values->since.empty()) request.since_unix_ms = TRY(parse_utc_ms(values->since));
        request.kept_head = values->kept_head;
        request.file = values->file;
        return request;
      });
  add_name(*verb, "--tenant", values->tenant, "Tenant whose leases the certificate is about");
  verb->add_flag("--shared", values->is_shared,
                 "Instead of a tenant: published texts and adapters that all tenants share");
  add_since(*verb, *values, "Leases granted");
  verb->add_option("--head", values->kept_head,
                   "File of a signed head that the reader kept: also prove that no record up to it "
                   "was changed or removed");
  add_file(*verb, *values);
}

void add_head(Commands& commands, CLI::App& noun, const std::shared_ptr<AuditValues>& values) {
  auto* verb = commands.add_verb(
      noun,
      {"head",
       "Sign the state of the audit chain, to keep elsewhere: a later certificate can show that "
       "no record up to it was changed or removed",
       "brokerctl audit head -o head-2026-11.json"},
      [values] { return ShowAuditHead{.file = values->file}; });
  add_file(*verb, *values);
}

void add_signing_key(Commands& commands, CLI::App& noun) {
  auto* key = commands.add_verb(
      noun,
      {"key", "Print the public key that checks certificates; with -o wide or json all keys so far",
       "brokerctl audit key >operator.pub\nbrokerctl audit key -o wide"},
      [] { return SigningKey{}; });
  key->require_subcommand(0, 1);
  commands.add_verb(
      *key, {"rotate", "Make a new key, which the old one signs", "brokerctl audit key rotate"},
      [] { return SigningKey{.rotate = true}; });
}

}  // namespace

void add_audit(Commands& commands) {
  const auto query = std::make_shared<ListAudit>();
  const auto both = commands.add_noun(
      {"audit",
       "Records of finished requests, leases and their memory; needs a broker with --state-dir",
       "brokerctl audit --limit 20"},
      [query] { return *query; });
  for (CLI::App* command : both) {
    add_number_option(*command, "--limit", query->limit,
                      "List at most this number of records, the newest", 1, 1000);
  }
  CLI::App& noun = *both[0];
  commands.add_verb(noun,
                    {"verify",
                     "Check the hash chain of all records; exit code 1 if one was changed, moved "
                     "or removed, 4 if the file audit_head was missing",
                     "brokerctl audit verify\nbrokerctl audit verify -o json"},
                    [] { return VerifyAudit{}; });
  const auto values = std::make_shared<AuditValues>();
  add_export(commands, noun, values);
  add_certificate(commands, noun, values);
  add_head(commands, noun, values);
  add_signing_key(commands, noun);
}

}  // namespace leasehold::brokerctl
