#include "tools/brokerctl/audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "common/cli/print_error.hpp"
#include "ipc/client/parse_message.hpp"
#include "tools/cli/json_text.hpp"

namespace leasehold::brokerctl {
namespace {

using wire::Json;

/// The broker reads a page of this size within 3 ms, while revocations wait.
constexpr std::uint32_t kPageRecords = 128;

Result<wire::AuditPage> read_audit_page(std::uint64_t after, std::uint32_t limit,
                                        const Dependencies& dependencies) {
  const wire::AuditList request{.after = after, .limit = limit};
  const Json reply = TRY(dependencies.call(wire::AuditList::kMethod, request.to_json()));
  auto page = TRY(client::parse_message<wire::AuditPage>(reply));
  std::uint64_t last = after;
  for (const wire::AuditRecordView& record : page.records) {
    if (record.sequence <= last) {
      return fail(Errc::MalformedMessage,
                  fmt::format("the broker sent audit record {} after {}", record.sequence, last));
    }
    last = record.sequence;
  }
  return page;
}

AuditState state_of(const wire::AuditPage& page) {
  return {.head_missing_after = page.head_missing_after, .clock_ahead_ms = page.clock_ahead_ms};
}

audit::Link removed_of(const wire::AuditPage& page) {
  return {.sequence = page.removed_sequence, .hash = page.removed_hash};
}

/// The exported form of a record. Content that is not a JSON object was altered, and is exported as
/// text.
Json exported(const wire::AuditRecordView& record) {
  Json object = Json::parse(record.content, nullptr, false);
  if (!object.is_object())
    object = Json{{"sequence", record.sequence}, {"content", record.content}};
  object["hash"] = record.hash;
  return object;
}

template <class Value>
Value member(const Json& record, const char* name, Value otherwise) {
  const auto found = record.find(name);
  if constexpr (std::is_same_v<Value, std::string>) {
    return found != record.end() && found->is_string() ? found->get<std::string>() : otherwise;
  } else {
    return found != record.end() && found->is_number_integer() ? found->get<Value>() : otherwise;
  }
}

std::string text_member(const Json& record, const char* name) {
  return cli::or_dash(printable(member<std::string>(record, name, "")));
}

std::string number_member(const Json& record, const char* name) {
  const auto number = member<std::int64_t>(record, name, -1);
  return number < 0 ? "-" : fmt::format("{}", number);
}

}  // namespace

Result<void> for_each_audit_page(std::uint64_t after, const Dependencies& dependencies,
                                 const std::function<Result<void>(const wire::AuditPage&)>& take) {
  while (true) {
    const wire::AuditPage page = TRY(read_audit_page(after, kPageRecords, dependencies));
    TRY(take(page));
    if (page.records.empty()) return {};
    after = page.records.back().sequence;
  }
}

Result<AuditVerdict> verify_audit(const Dependencies& dependencies) {
  const wire::AuditPage start = TRY(read_audit_page(0, 0, dependencies));
  audit::ChainCheck check(removed_of(start), {start.head_sequence, start.head_hash});
  AuditVerdict verdict{.state = state_of(start)};
  TRY(for_each_audit_page(0, dependencies, [&](const wire::AuditPage& page) -> Result<void> {
    check.skip_to(removed_of(page));
    for (const wire::AuditRecordView& record : page.records) {
      if (verdict.first == 0) verdict.first = record.sequence;
      check.add({record.sequence, record.content, record.hash});
      if (record.content.contains(R"("record":"audit_gap")")) ++verdict.gaps;
    }
    return {};
  }));
  check.finish();
  verdict.last = check.last();
  verdict.records = check.records();
  verdict.findings = check.finding_count();
  verdict.listed = check.findings();
  return verdict;
}

Result<void> export_audit(const ExportAudit& request, const Dependencies& dependencies) {
  return for_each_audit_page(0, dependencies, [&](const wire::AuditPage& page) -> Result<void> {
    for (const wire::AuditRecordView& record : page.records) {
      const Json object = exported(record);
      if (member<std::int64_t>(object, "at_unix_ms", 0) < request.since_unix_ms) continue;
      if (request.tenant && member<std::string>(object, "tenant", "") != request.tenant->value)
        continue;
      *dependencies.out << cli::json_text(object) << '\n';
    }
    dependencies.out->flush();
    return {};
  });
}

Result<UsageSums> sum_usage(const ShowUsage& request, const Dependencies& dependencies) {
  UsageSums sums;
  const auto add = [&](const Json& record) {
    if (member<std::string>(record, "record", "") != "usage_record") return;
    if (member<std::int64_t>(record, "at_unix_ms", 0) < request.since_unix_ms) return;
    const auto tenant = member<std::string>(record, "tenant", "");
    const auto key = member<std::string>(record, "key", "");
    if (request.tenant && tenant != request.tenant->value) return;
    if (request.key && key != request.key->value) return;
    UsageSum& sum = sums[{tenant, key}];
    ++sum.requests;
    sum.prompt_tokens += member<std::uint32_t>(record, "prompt_tokens", 0);
    sum.cached_tokens += member<std::uint32_t>(record, "cached_tokens", 0);
    sum.generated_tokens += member<std::uint32_t>(record, "generated_tokens", 0);
  };
  TRY(for_each_audit_page(0, dependencies, [&](const wire::AuditPage& page) -> Result<void> {
    for (const wire::AuditRecordView& record : page.records) add(exported(record));
    return {};
  }));
  return sums;
}

Json usage_json(const UsageSums& sums) {
  Json items = Json::array();
  for (const auto& [owner, sum] : sums) {
    Json item{{"tenant", owner.first},
              {"requests", sum.requests},
              {"prompt_tokens", sum.prompt_tokens},
              {"cached_tokens", sum.cached_tokens},
              {"generated_tokens", sum.generated_tokens}};
    if (!owner.second.empty()) item["key"] = owner.second;
    items.push_back(std::move(item));
  }
  return {{"items", std::move(items)}};
}

cli::Table usage_table(const UsageSums& sums) {
  cli::Table table{.columns = {{"TENANT"},
                               {"KEY"},
                               {"REQUESTS", true},
                               {"PROMPT", true},
                               {"CACHED", true},
                               {"GENERATED", true}}};
  for (const auto& [owner, sum] : sums) {
    table.rows.push_back({printable(owner.first), cli::or_dash(printable(owner.second)),
                          fmt::format("{}", sum.requests), fmt::format("{}", sum.prompt_tokens),
                          fmt::format("{}", sum.cached_tokens),
                          fmt::format("{}", sum.generated_tokens)});
  }
  return table;
}

Result<std::vector<Json>> newest_audit_records(std::uint64_t limit,
                                               const Dependencies& dependencies,
                                               AuditState* state) {
  const wire::AuditPage start = TRY(read_audit_page(0, 0, dependencies));
  if (state != nullptr) *state = state_of(start);
  std::vector<Json> records;
  TRY(for_each_audit_page(start.head_sequence - std::min(start.head_sequence, limit), dependencies,
                          [&](const wire::AuditPage& page) -> Result<void> {
                            for (const auto& record : page.records)
                              records.push_back(exported(record));
                            return {};
                          }));
  // The broker may have appended records since the first call.
  if (records.size() > limit)
    records.erase(records.begin(), records.end() - static_cast<std::ptrdiff_t>(limit));
  return records;
}

Json audit_json(const AuditVerdict& verdict) {
  Json findings = Json::array();
  for (const audit::Finding& finding : verdict.listed) {
    findings.push_back(
        {{"sequence", finding.sequence}, {"problem", finding.problem}, {"next", finding.next}});
  }
  return {{"records", verdict.records},
          {"first", verdict.first},
          {"last", verdict.last.sequence},
          {"hash", verdict.last.hash},
          {"findings", verdict.findings},
          {"listed", std::move(findings)},
          {"gaps", verdict.gaps},
          {"head_missing_after", verdict.state.head_missing_after},
          {"clock_ahead_ms", verdict.state.clock_ahead_ms}};
}

std::string audit_notes(const AuditState& state) {
  std::string notes;
  if (state.head_missing_after != 0)
    notes += fmt::format(
        "The file audit_head was missing at a start of the broker: records after {} may have been "
        "cut off then. Compare with a hash that was kept elsewhere.\n",
        state.head_missing_after);
  if (state.clock_ahead_ms != 0)
    notes += fmt::format(
        "The broker's clock jumped {} days ahead, which does not count as age of the records. If "
        "the clock is right, start leasehold-broker once with --audit-trust-clock.\n",
        state.clock_ahead_ms / 86'400'000);
  return notes;
}

std::string audit_notes(const AuditVerdict& verdict) {
  std::string notes = audit_notes(verdict.state);
  if (verdict.gaps > 0)
    notes += fmt::format(
        "The disk was full {} times: records about leases were then written later, several as one. "
        "See the records audit_gap in `brokerctl audit export`.\n",
        verdict.gaps);
  if (verdict.findings > 0) return notes;
  return notes +
         "VERIFIED does not show that the end of the chain and the file audit_head were replaced "
         "together: compare the hash with one that was kept elsewhere.\n";
}

int audit_exit_code(const AuditVerdict& verdict) {
  if (verdict.findings > 0) return 1;
  return verdict.state.head_missing_after != 0 ? kExitHeadMissing : 0;
}

cli::Table audit_table(const AuditVerdict& verdict) {
  if (verdict.findings == 0) {
    return {.columns = {{"VERIFIED", true}, {"FIRST", true}, {"LAST", true}, {"HASH OF THE LAST"}},
            .rows = {{fmt::format("{}", verdict.records), fmt::format("{}", verdict.first),
                      fmt::format("{}", verdict.last.sequence), verdict.last.hash}}};
  }
  cli::Table table{.columns = {{"SEQUENCE", true}, {"PROBLEM"}, {"NEXT"}}};
  for (const audit::Finding& finding : verdict.listed)
    table.rows.push_back({fmt::format("{}", finding.sequence), finding.problem, finding.next});
  if (verdict.findings > verdict.listed.size()) {
    table.rows.push_back({"…", fmt::format("{} more", verdict.findings - verdict.listed.size()),
                          "fix the listed ones, then run `brokerctl audit verify` again"});
  }
  return table;
}

cli::Table audit_table(const std::vector<Json>& records) {
  cli::Table table{.columns = {{"SEQUENCE", true},
                               {"TIME"},
                               {"RECORD"},
                               {"TENANT"},
                               {"KEY"},
                               {"LEASE"},
                               {"WORKER"},
                               {"REASON"},
                               {"REQUEST"},
                               {"PROMPT", true},
                               {"CACHED", true},
                               {"GENERATED", true}}};
  for (const Json& record : records) {
    table.rows.push_back(
        {number_member(record, "sequence"),
         cli::utc_text(member<std::int64_t>(record, "at_unix_ms", 0) / 1000),
         text_member(record, "record"), text_member(record, "tenant"), text_member(record, "key"),
         text_member(record, "lease"), text_member(record, "worker"), text_member(record, "reason"),
         text_member(record, "request"), number_member(record, "prompt_tokens"),
         number_member(record, "cached_tokens"), number_member(record, "generated_tokens")});
  }
  return table;
}

}  // namespace leasehold::brokerctl
