#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "ipc/control/transport/base64.hpp"
#include "ipc/control/transport/excess.hpp"
#include "ipc/etcd/json_gateway.hpp"

namespace leasehold::etcd {
namespace {

using Json = nlohmann::json;

/// A transaction's reply has eight levels. The size of a reply is limited where it is received.
constexpr control::Limits kReplyLimits{.max_depth = 16, .max_values = 1 << 20};

std::unexpected<Error> malformed(std::string_view what) {
  return fail(Errc::MalformedMessage,
              fmt::format("etcd's reply is not usable: {}; check that the URL is that of an etcd "
                          "3.4 or newer",
                          what));
}

Result<Json> parse_reply(std::string_view text) {
  if (const auto excess = control::exceeded_limit(text, kReplyLimits)) return malformed(*excess);
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return malformed("it is not JSON");
  if (!json.is_object()) return malformed("it is not a JSON object");
  return json;
}

/// Reads the members of one JSON object. The first one that is wrong is kept as the problem.
class Members {
 public:
  Members(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) problem_ = where_ + " is not an object";
  }

  std::int64_t number(const char* name) {
    const Json* found = find(name);
    if (!found) return 0;
    std::int64_t value = 0;
    const std::string* text = found->get_ptr<const std::string*>();
    if (text && !text->empty()) {
      const char* end = text->data() + text->size();
      const auto [stop, error] = std::from_chars(text->data(), end, value);
      if (error == std::errc() && stop == end && value >= 0) return value;
    }
    return wrong(name, "a number of 63 bits, as a text", value);
  }
  Revision revision(const char* name) { return {number(name)}; }
  bool flag(const char* name) {
    const Json* found = find(name);
    if (!found || found->is_boolean()) return found && found->get<bool>();
    return wrong(name, "true or false", false);
  }
  std::string text(const char* name) {
    const Json* found = find(name);
    if (!found || found->is_string()) return found ? found->get<std::string>() : std::string();
    return wrong(name, "a text", std::string());
  }
  std::string bytes(const char* name) {
    auto decoded = control::from_base64(text(name));
    return decoded ? *std::move(decoded) : wrong(name, "base64", std::string());
  }
  /// Null if it is missing.
  const Json* object(const char* name) {
    const Json* found = find(name);
    return !found || found->is_object() ? found : wrong<const Json*>(name, "an object", nullptr);
  }
  template <class Read>
  void each(const char* name, Read read) {
    const Json* found = find(name);
    if (!found) return;
    if (!found->is_array()) return (void)wrong(name, "an array", 0);
    for (std::size_t i = 0; i < found->size() && problem_.empty(); ++i) {
      Members item((*found)[i], fmt::format("{}{}[{}].", where_, name, i));
      read(item);
      if (problem_.empty()) problem_ = std::move(item.problem_);
    }
  }
  /// The revision in the header. Every reply has one.
  Revision header_revision() {
    const Json* found = object("header");
    if (!found) return wrong(where_.c_str(), "a member \"header\"", Revision());
    Members header(*found, where_ + "header.");
    const Revision revision = header.revision("revision");
    if (problem_.empty()) problem_ = std::move(header.problem_);
    return revision;
  }
  template <class T>
  T wrong(const char* name, std::string_view expected, T instead) {
    if (problem_.empty()) problem_ = fmt::format("{}{} is not {}", where_, name, expected);
    return instead;
  }
  const std::string& problem() const { return problem_; }
  const Json* find(const char* name) const {
    const auto found = json_.is_object() ? json_.find(name) : json_.end();
    return json_.is_object() && found != json_.end() ? &*found : nullptr;
  }

 private:
  const Json& json_;
  std::string where_;  // with the dot behind it
  std::string problem_;
};

KeyValue read_entry(Members& members) {
  KeyValue entry;
  entry.key = members.bytes("key");
  entry.value = members.bytes("value");
  entry.created = members.revision("create_revision");
  entry.modified = members.revision("mod_revision");
  return entry;
}

/// An entry of a range exists, so it has both revisions.
std::vector<KeyValue> read_entries(Members& members, const KeyRange& range) {
  std::vector<KeyValue> entries;
  members.each("kvs", [&](Members& item) {
    KeyValue entry = read_entry(item);
    if (entry.created.value <= 0 || entry.modified < entry.created)
      item.wrong("create_revision", "between 1 and mod_revision", 0);
    if (!range.contains(entry.key)) item.wrong("key", "within the range that was requested", 0);
    entries.push_back(std::move(entry));
  });
  return entries;
}

template <class T>
Result<T> checked(T value, const Members& members) {
  if (!members.problem().empty()) return malformed(members.problem());
  return value;
}

WatchEvent read_event(Members& item) {
  WatchEvent event;
  const std::string type = item.text("type");
  event.is_deleted = type == "DELETE";
  if (!type.empty() && type != "PUT" && type != "DELETE") item.wrong("type", "PUT or DELETE", 0);
  const Json* kv = item.object("kv");
  if (!kv) return item.wrong("kv", "an object", event);
  Members entry(*kv, "kv.");
  event.entry = read_entry(entry);
  if (!entry.problem().empty()) item.wrong("kv", entry.problem(), 0);
  if (event.entry.key.empty()) item.wrong("kv", "an entry with a key", 0);
  return event;
}

/// The list that one operation found. Only a Get has one.
void read_response(Members& item, const Operation& operation, TransactionReply& reply) {
  const char* const kNames[] = {"response_put", "response_delete_range", "response_range"};
  const char* name = kNames[operation.index()];
  const Json* response = item.object(name);
  if (!response) return (void)item.wrong(name, "an object", 0);
  const auto* get = std::get_if<Get>(&operation);
  if (!get) return;
  Members members(*response, std::string(name) + ".");
  reply.found.push_back(read_entries(members, get->range));
  reply.counts.push_back(members.number("count"));
  if (get->newest_only && reply.found.back().size() > 1)
    members.wrong("kvs", "a list of at most one entry", 0);
  if (!members.problem().empty()) item.wrong(name, members.problem(), 0);
}

}  // namespace

Result<RangeReply> read_range_reply(std::string_view text, const KeyRange& range) {
  const Json json = TRY(parse_reply(text));
  Members members(json, {});
  RangeReply reply;
  reply.revision = members.header_revision();
  reply.has_more = members.flag("more");
  reply.entries = read_entries(members, range);
  return checked(std::move(reply), members);
}

Result<TransactionReply> read_transaction_reply(std::string_view text,
                                                const Transaction& transaction) {
  const Json json = TRY(parse_reply(text));
  Members members(json, {});
  TransactionReply reply;
  reply.revision = members.header_revision();
  reply.succeeded = members.flag("succeeded");
  const auto& sent = reply.succeeded ? transaction.success : transaction.failure;
  std::size_t next = 0;
  members.each("responses", [&](Members& item) {
    if (next < sent.size()) read_response(item, sent[next], reply);
    ++next;
  });
  if (next != sent.size())
    members.wrong("responses", fmt::format("a list of {} responses", sent.size()), 0);
  return checked(std::move(reply), members);
}

Result<std::string> read_authenticate_reply(std::string_view text) {
  const Json json = TRY(parse_reply(text));
  Members members(json, {});
  std::string token = members.text("token");
  const bool is_printable = std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; });
  if (token.empty() || !is_printable) members.wrong("token", "a text without spaces", 0);
  return checked(std::move(token), members);
}

Result<MemberStatus> read_status_reply(std::string_view text) {
  const Json json = TRY(parse_reply(text));
  Members members(json, {});
  MemberStatus status;
  status.revision = members.header_revision();
  status.version = members.text("version");
  // Ids of members have 64 bits, so the leader's is read as a text.
  const std::string leader = members.text("leader");
  status.has_leader = !leader.empty() && leader != "0";
  status.size_bytes = members.number("dbSize");
  return checked(std::move(status), members);
}

Result<WatchReply> read_watch_reply(std::string_view line) {
  const Json json = TRY(parse_reply(line));
  if (const auto error = json.find("error"); error != json.end())
    return std::unexpected(error_of_reply(200, line));
  Members outer(json, {});
  const Json* result = outer.object("result");
  if (!result) return malformed("the line of a watch has no result");
  Members members(*result, "result.");
  WatchReply reply;
  reply.revision = members.header_revision();
  reply.is_cancelled = members.flag("canceled");
  reply.compacted = members.revision("compact_revision");
  reply.reason = members.text("cancel_reason");
  members.each("events", [&](Members& item) { reply.events.push_back(read_event(item)); });
  return checked(std::move(reply), members);
}

}  // namespace leasehold::etcd
