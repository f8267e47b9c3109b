#include "tools/brokerctl/arguments/audit_arguments.hpp"

#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>

#include "common/cli/command_line.hpp"

namespace leasehold::brokerctl {

Result<std::int64_t> parse_utc_ms(const std::string& text) {
  for (const char* format : {"%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"}) {
    tm fields{};
    const char* const end = ::strptime(text.c_str(), format, &fields);
    if (end == nullptr || *end != '\0') continue;
    tm normal = fields;
    const time_t seconds = ::timegm(&normal);
    // strptime accepts the 31st of each month.
    if (normal.tm_mday != fields.tm_mday || seconds < 0) continue;
    return std::int64_t{seconds} * 1000;
  }
  return fail(Errc::BadRequest, fmt::format("'{}' is neither a day, as 2026-11-24, nor a time, as "
                                            "2026-11-24T18:30:00Z",
                                            text));
}

void AuditArguments::add_verbs(CLI::App& noun) {
  for (CLI::App* app : {&noun, noun.get_subcommand("list")}) {
    app->add_option("--limit", list_.limit, "List at most this number of records, the newest")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
  }
  noun.add_subcommand("verify",
                      "Check the hash chain of all records; exit code 1 if one was changed, moved "
                      "or removed, 4 if the file audit_head was missing")
      ->group("Verbs");
  CLI::App* all = noun.add_subcommand("export", "All records as JSON lines, oldest first");
  all->group("Verbs");
  all->add_option("--since", since_,
                  "Only records from this time on, in UTC, such as 2026-11-24 or "
                  "2026-11-24T18:30:00Z")
      ->check([](const std::string& text) {
        const auto parsed = parse_utc_ms(text);
        return parsed ? std::string() : parsed.error().detail;
      });
  all->add_option("--tenant", tenant_, "Only records of this tenant")->check(check_name);
}

Result<Verb> AuditArguments::verb(const std::string& verb) const {
  if (verb == "verify") return VerifyAudit{};
  if (verb != "export") return list_;
  ExportAudit request;
  if (!since_.empty()) request.since_unix_ms = TRY(parse_utc_ms(since_));
  if (!tenant_.empty()) request.tenant = TRY(TenantId::parse(tenant_));
  return request;
}

}  // namespace leasehold::brokerctl
