#include "tools/gateway/decide/host_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "common/expects.hpp"

namespace leasehold::gateway {
namespace {

constexpr std::size_t kMaxReportBytes = 1 << 20;
constexpr std::size_t kMaxModels = 256;
constexpr std::size_t kMaxNameBytes = 256;
constexpr std::size_t kMaxDepth = 8;

using Json = nlohmann::json;

std::unexpected<Error> wrong_field(std::string_view field, std::string_view form) {
  return fail(Errc::MalformedMessage,
              fmt::format("a host's report needs \"{}\" as {}", field, form));
}

/// `needed`: a missing or empty text is an error.
Result<std::string> text_field(const Json& object, const char* field, bool needed) {
  const auto found = object.find(field);
  if (found == object.end() || found->is_null()) {
    if (needed) return wrong_field(field, "a text");
    return std::string();
  }
  if (!found->is_string() || (needed && found->get_ref<const std::string&>().empty()))
    return wrong_field(field, "a text");
  std::string text = found->get<std::string>();
  if (text.size() > kMaxNameBytes) {
    return fail(Errc::MessageTooLarge,
                fmt::format("\"{}\" of a host's report has {} bytes, at most "
                            "{} are allowed",
                            field, text.size(), kMaxNameBytes));
  }
  return text;
}

Result<std::uint32_t> count_field(const Json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end()) return 0;
  if (!found->is_number_unsigned() || found->get<std::uint64_t>() > 0xFFFF'FFFFull)
    return wrong_field(field, "a number from 0 to 4294967295");
  return found->get<std::uint32_t>();
}

Result<std::vector<ServedModel>> models_field(const Json& object) {
  const auto found = object.find("models");
  if (found == object.end() || !found->is_array()) return wrong_field("models", "a list");
  if (found->size() > kMaxModels) {
    return fail(Errc::MessageTooLarge, fmt::format("a host's report has {} models, at most {} are "
                                                   "allowed",
                                                   found->size(), kMaxModels));
  }
  std::vector<ServedModel> models;
  for (const Json& model : *found) {
    if (!model.is_object()) return wrong_field("models", "a list of objects");
    std::string id = TRY(text_field(model, "id", true));
    std::string identity = TRY(text_field(model, "identity", false));
    models.push_back({std::move(id), std::move(identity)});
  }
  return models;
}

Result<bool> flag_field(const Json& object, const char* field, bool otherwise) {
  const auto found = object.find(field);
  if (found == object.end()) return otherwise;
  if (!found->is_boolean()) return wrong_field(field, "true or false");
  return found->get<bool>();
}

Result<void> check_list(const std::vector<std::string>& addresses) {
  if (addresses.empty())
    return fail(Errc::BadRequest, "the list of hosts is empty; name at least one");
  std::set<std::string_view> seen;
  for (const std::string& address : addresses) {
    if (!seen.insert(address).second) {
      return fail(Errc::BadRequest,
                  fmt::format("host {} is listed twice; remove one of the entries", address));
    }
  }
  return {};
}

/// Stops at values that are nested deeper than a report is.
bool is_shallow(int depth, Json::parse_event_t, Json&) {
  return depth <= static_cast<int>(kMaxDepth);
}

}  // namespace

Result<HostReport> HostReport::parse(std::string_view text) {
  if (text.size() > kMaxReportBytes) {
    return fail(Errc::MessageTooLarge,
                fmt::format("a host's report has {} bytes, at most {} are allowed", text.size(),
                            kMaxReportBytes));
  }
  const Json json = Json::parse(text, is_shallow, false);
  if (!json.is_object())
    return fail(Errc::MalformedMessage, "a host's report is not a JSON object");
  HostReport report;
  report.name = TRY(text_field(json, "host", true));
  report.models = TRY(models_field(json));
  const auto ready = json.find("ready");
  if (ready == json.end() || !ready->is_boolean()) return wrong_field("ready", "true or false");
  report.ready = ready->get<bool>();
  report.code = TRY(text_field(json, "code", false));
  report.asleep = TRY(flag_field(json, "asleep", false));
  report.keeps_files = TRY(flag_field(json, "keeps_files", true));
  report.running = TRY(count_field(json, "running"));
  report.waiting = TRY(count_field(json, "waiting"));
  return report;
}

const ServedModel* HostReport::find(std::string_view model) const {
  const auto found = std::ranges::find(models, model, &ServedModel::id);
  return found == models.end() ? nullptr : &*found;
}

bool HostReport::serves(std::string_view model) const {
  return model.empty() ? !models.empty() : find(model) != nullptr;
}

std::string_view name(HostState state) {
  switch (state) {
    case HostState::Silent:
      return "silent";
    case HostState::NotReady:
      return "not ready";
    case HostState::Draining:
      return "draining";
    case HostState::Late:
      return "late";
    case HostState::Asleep:
      return "asleep";
    case HostState::Ready:
      return "ready";
  }
  return "";
}

Result<HostTable> HostTable::create(std::vector<std::string> addresses, Duration silent_after) {
  TRY(check_list(addresses));
  std::vector<Host> hosts;
  for (std::string& address : addresses) hosts.push_back({.address = std::move(address)});
  return HostTable(std::move(hosts), silent_after);
}

Result<HostChanges> HostTable::set_list(const std::vector<std::string>& addresses) {
  TRY(check_list(addresses));
  HostChanges changes;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const bool is_wanted = std::ranges::find(addresses, hosts_[i].address) != addresses.end();
    if (is_wanted == std::exchange(hosts_[i].is_listed, is_wanted)) continue;
    (is_wanted ? changes.added : changes.removed).push_back(HostId{i});
  }
  for (const std::string& address : addresses) {
    if (std::ranges::find(hosts_, address, &Host::address) != hosts_.end()) continue;
    changes.added.push_back(HostId{hosts_.size()});
    hosts_.push_back({.address = address});
  }
  return changes;
}

HostChanges HostTable::set_members(const std::vector<CellMember>& members) {
  std::map<std::string_view, const CellMember*> wanted;
  for (const CellMember& member : members) wanted.emplace(member.address, &member);
  HostChanges changes;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    const auto found = wanted.find(hosts_[i].address);
    if (found == wanted.end()) {
      if (hosts_[i].is_listed) changes.removed.push_back(HostId{i});
      leave_cell(hosts_[i]);
      continue;
    }
    const bool was_listed = hosts_[i].is_listed;
    if (enter_cell(hosts_[i], *found->second))
      (was_listed ? changes.renewed : changes.added).push_back(HostId{i});
    wanted.erase(found);
  }
  for (const auto& [address, member] : wanted) {
    changes.added.push_back(HostId{hosts_.size()});
    hosts_.push_back({.address = member->address});
    enter_cell(hosts_.back(), *member);
  }
  return changes;
}

/// Returns true if the incarnation is another one: all that is known of the host is of a process
/// that has stopped, or should have.
bool HostTable::enter_cell(Host& host, const CellMember& member) {
  host.is_listed = true;
  host.is_draining = member.is_draining;
  if (host.incarnation == member.incarnation) return false;
  host.incarnation = member.incarnation;
  host.reported_at.reset();
  host.refuses_until = {};
  return true;
}

void HostTable::leave_cell(Host& host) {
  host.is_listed = false;
  host.incarnation = Incarnation{};
  host.reported_at.reset();
}

const HostReport* HostTable::report(HostId host) const {
  const auto& report = at(host).report;
  return report ? &*report : nullptr;
}

HostState HostTable::state(HostId id, TimePoint now) const {
  const Host& host = at(id);
  if (!host.report || !host.reported_at || now - *host.reported_at > silent_after_)
    return HostState::Silent;
  const bool must_leave = !host.is_listed || host.is_draining;
  if (host.report->ready && must_leave) return HostState::Draining;
  const bool is_late = now - *host.reported_at > silent_after_ / 2;
  if (host.report->ready && is_late) return HostState::Late;
  if (host.report->ready) return host.report->asleep ? HostState::Asleep : HostState::Ready;
  return host.report->code == name(Errc::Draining) ? HostState::Draining : HostState::NotReady;
}

std::uint32_t HostTable::load(HostId id) const {
  const Host& host = at(id);
  if (!host.report) return host.started;
  const std::uint64_t reported = std::uint64_t{host.report->running} + host.report->waiting;
  constexpr std::uint64_t kMost = 0x7FFF'FFFF;
  return std::max(host.started, static_cast<std::uint32_t>(std::min(reported, kMost)));
}

void HostTable::reported(HostId host, HostReport report, TimePoint now) {
  at(host).report = std::move(report);
  at(host).reported_at = now;
}

void HostTable::refused(HostId host, Duration retry_after, TimePoint now) {
  at(host).refuses_until = std::max(at(host).refuses_until, now + retry_after);
}

void HostTable::unreachable(HostId host) {
  at(host).reported_at.reset();
}

void HostTable::ended(HostId host) {
  expects(at(host).started > 0, "a request that ends on a host was started there");
  --at(host).started;
}

}  // namespace leasehold::gateway
