#include "tools/gateway/decide/host_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "common/expects.hpp"
#include "ipc/control/messages/cell/host_name.hpp"

namespace leasehold::gateway {
namespace {

constexpr std::size_t kMaxReportBytes = 1 << 20;
constexpr std::size_t kMaxModels = 256;
constexpr std::size_t kMaxNameBytes = 256;
constexpr std::size_t kMaxDepth = 8;
constexpr std::uint64_t kSlots = std::uint64_t{1} << 32;

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
  report.loads_adapters = TRY(flag_field(json, "loads_adapters", false));
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
  HostTable table(silent_after);
  for (std::string& address : addresses) table.add(std::move(address));
  return table;
}

HostTable::Host& HostTable::add(std::string address) {
  if (free_.empty()) {
    hosts_.push_back({.id = HostId{hosts_.size()}, .address = std::move(address)});
    return hosts_.back();
  }
  Host& host = hosts_[free_.back()];
  free_.pop_back();
  host.address = std::move(address);
  host.is_known = true;
  return host;
}

void HostTable::forget(HostId host) {
  const auto slot = static_cast<std::uint32_t>(host.value % kSlots);
  hosts_[slot] = {.id = HostId{host.value + kSlots}, .address = {}, .is_known = false};
  free_.push_back(slot);
}

std::vector<HostId> HostTable::forget_gone(TimePoint now) {
  std::vector<std::pair<TimePoint, HostId>> gone;
  for (Host& host : hosts_) {
    if (!host.is_known) continue;
    if (host.is_listed || host.started > 0) {
      host.unused_since.reset();
      continue;
    }
    if (!host.unused_since) host.unused_since = now;
    gone.emplace_back(*host.unused_since, host.id);
  }
  std::ranges::sort(gone);
  const std::size_t too_many = gone.size() - std::min(gone.size(), kMaxGone);
  std::vector<HostId> forgotten;
  for (const auto& [since, host] : gone) {
    if (now - since < kKeepGone && forgotten.size() >= too_many) break;
    forget(host);
    forgotten.push_back(host);
  }
  return forgotten;
}

const HostTable::Host& HostTable::forgotten() {
  static const Host kForgotten{.id = {},
                               .address = std::string(kForgottenAddress),
                               .is_known = false,
                               .is_listed = false,
                               .incarnation = Incarnation{}};
  return kForgotten;
}

/// The slot of a host that is known.
std::optional<std::size_t> HostTable::slot_of(HostId host) const {
  const auto slot = static_cast<std::size_t>(host.value % kSlots);
  const bool is_known = slot < hosts_.size() && hosts_[slot].id == host && hosts_[slot].is_known;
  return is_known ? std::optional(slot) : std::nullopt;
}

HostTable::Host* HostTable::find(HostId host) {
  const auto slot = slot_of(host);
  return slot ? &hosts_[*slot] : nullptr;
}

const HostTable::Host& HostTable::at(HostId host) const {
  const auto slot = slot_of(host);
  return slot ? hosts_[*slot] : forgotten();
}

Result<HostChanges> HostTable::set_list(const std::vector<std::string>& addresses) {
  TRY(check_list(addresses));
  HostChanges changes;
  for (Host& host : hosts_) {
    if (!host.is_known) continue;
    const bool is_wanted = std::ranges::find(addresses, host.address) != addresses.end();
    if (is_wanted == std::exchange(host.is_listed, is_wanted)) continue;
    (is_wanted ? changes.added : changes.removed).push_back(host.id);
  }
  for (const std::string& address : addresses)
    if (std::ranges::find(hosts_, address, &Host::address) == hosts_.end())
      changes.added.push_back(add(address).id);
  return changes;
}

HostChanges HostTable::set_members(const std::vector<CellMember>& members) {
  std::map<std::string_view, const CellMember*> wanted;
  for (const CellMember& member : members) wanted.emplace(member.address, &member);
  HostChanges changes;
  for (Host& host : hosts_) {
    if (!host.is_known) continue;
    const auto found = wanted.find(host.address);
    if (found == wanted.end()) {
      if (host.is_listed) changes.removed.push_back(host.id);
      leave_cell(host);
      continue;
    }
    const bool was_listed = host.is_listed;
    if (enter_cell(host, *found->second))
      (was_listed ? changes.renewed : changes.added).push_back(host.id);
    wanted.erase(found);
  }
  for (const auto& [address, member] : wanted) {
    Host& host = add(member->address);
    enter_cell(host, *member);
    changes.added.push_back(host.id);
  }
  return changes;
}

/// Returns true if the incarnation is another one: all that is known of the host is of a process
/// that has stopped, or should have.
bool HostTable::enter_cell(Host& host, const CellMember& member) {
  host.is_listed = true;
  host.is_draining = member.is_draining;
  host.name_in_cell = member.host;
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

std::string HostTable::name_of(HostId id) const {
  const Host& host = at(id);
  if (host.incarnation) return host.name_in_cell;
  const bool has_name = host.report && HostName::parse(host.report->name);
  return has_name ? host.report->name : std::string();
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

std::uint32_t HostTable::load(HostId id, TimePoint now) const {
  const Host& host = at(id);
  if (state(id, now) == HostState::Silent) return host.started;
  const std::uint64_t reported = std::uint64_t{host.report->running} + host.report->waiting;
  constexpr std::uint64_t kMost = 0x7FFF'FFFF;
  return std::max(host.started, static_cast<std::uint32_t>(std::min(reported, kMost)));
}

void HostTable::reported(HostId id, HostReport report, TimePoint now) {
  Host* host = find(id);
  if (host == nullptr) return;
  host->report = std::move(report);
  host->reported_at = now;
}

void HostTable::refused(HostId id, Duration retry_after, TimePoint now) {
  Host* host = find(id);
  if (host != nullptr) host->refuses_until = std::max(host->refuses_until, now + retry_after);
}

void HostTable::unreachable(HostId id) {
  Host* host = find(id);
  if (host != nullptr) host->reported_at.reset();
}

void HostTable::started(HostId id) {
  Host* host = find(id);
  if (host != nullptr) ++host->started;
}

/// A host that runs a request is not forgotten, so an unknown one was unknown when it started.
void HostTable::ended(HostId id) {
  Host* host = find(id);
  if (host == nullptr) return;
  expects(host->started > 0, "a request that ends on a host was started there");
  --host->started;
}

}  // namespace leasehold::gateway
