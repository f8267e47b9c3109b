#include "ipc/control/transport/envelope.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

#include "common/machine/confined.hpp"
#include "ipc/control/messages/member_order.hpp"
#include "ipc/control/transport/excess.hpp"

namespace leasehold::control {
namespace {

// JSON-RPC 2.0, section 5.1.
constexpr int kParseError = -32700;
constexpr int kInvalidRequest = -32600;
constexpr int kUnknownMethod = -32601;
constexpr int kInvalidParams = -32602;
constexpr int kServerError = -32000;

/// Replies repeat the id and errors name the method, so long ones would cost memory of this
/// process.
constexpr std::size_t kMaxIdBytes = 128;
constexpr std::size_t kMaxMethodBytes = 128;

constexpr std::uint64_t kMaxRetryAfter_ms = 86'400'000;

Envelope reject_malformed(std::string detail) {
  return {.content =
              RejectedMessage{nullptr, {Errc::MalformedMessage, std::move(detail)}, kParseError}};
}

const Json* member(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

std::string text_member(const Json& object, const char* key) {
  const Json* found = object.is_object() ? member(object, key) : nullptr;
  return found && found->is_string() ? found->get<std::string>() : "";
}

bool is_id(const Json& id) {
  if (id.is_string()) return id.get_ref<const std::string&>().size() <= kMaxIdBytes;
  return id.is_number_integer();
}

/// The code for an error of a peer that sends only JSON-RPC's number.
Errc errc_of_number(const Json* number) {
  if (number == nullptr || !number->is_number_integer()) return Errc::SystemError;
  if (*number == kParseError) return Errc::MalformedMessage;
  if (*number == kInvalidRequest || *number == kInvalidParams) return Errc::BadRequest;
  if (*number == kUnknownMethod) return Errc::UnknownMethod;
  return Errc::SystemError;
}

/// A value out of range counts as missing, because the error code alone is enough to go on.
std::int64_t read_retry_after(const Json& data) {
  const Json* found = data.is_object() ? member(data, "retry_after_ms") : nullptr;
  if (found == nullptr || !found->is_number_unsigned()) return 0;
  const auto value = found->get<std::uint64_t>();
  return value <= kMaxRetryAfter_ms ? static_cast<std::int64_t>(value) : 0;
}

Error read_error(const Json& json) {
  if (!json.is_object())
    return {Errc::MalformedMessage, "the error in the peer's reply must be an object"};
  const Json* data = member(json, "data");
  const auto named = errc_from_name(data ? text_member(*data, "code") : "");
  Error error{named.value_or(errc_of_number(member(json, "code"))), text_member(json, "message")};
  const auto scope = failure_scope_from_name(data ? text_member(*data, "scope") : "");
  error.scope = scope.value_or(error.scope);
  error.retry_after_ms = data ? read_retry_after(*data) : 0;
  return error;
}

int number_of(Errc code) {
  if (code == Errc::MalformedMessage) return kParseError;
  return code == Errc::UnknownMethod ? kUnknownMethod : kServerError;
}

RejectedMessage invalid_request(const Json* id, std::string detail) {
  return {id && is_id(*id) ? *id : Json(), {Errc::BadRequest, std::move(detail)}, kInvalidRequest};
}

decltype(Envelope::content) read_request(Json& object) {
  const Json* id = member(object, "id");
  const Json& method = object["method"];
  if (!method.is_string()) return invalid_request(id, "invalid request: 'method' must be text");
  if (method.get_ref<const std::string&>().size() > kMaxMethodBytes) {
    return invalid_request(
        id, fmt::format("invalid request: 'method' has more than {} bytes", kMaxMethodBytes));
  }
  if (id && !is_id(*id)) {
    return invalid_request(id, fmt::format("invalid request: 'id' must be an integer or text of "
                                           "at most {} bytes",
                                           kMaxIdBytes));
  }
  Json params = object.contains("params") ? std::move(object["params"]) : Json::object();
  if (!params.is_object())
    return invalid_request(id, "invalid request: 'params' must be an object with named fields");
  if (!id) return IncomingNotification{method.get<std::string>(), std::move(params)};
  return IncomingCall{*id, method.get<std::string>(), std::move(params)};
}

decltype(Envelope::content) read_content(Json& object) {
  const Json* id = member(object, "id");
  if (text_member(object, "jsonrpc") != "2.0")
    return invalid_request(id, R"(invalid request: "jsonrpc": "2.0" is missing)");
  if (object.contains("method")) return read_request(object);
  if (const Json* error = member(object, "error"))
    return IncomingReply{id ? *id : Json(), std::unexpected(read_error(*error))};
  if (object.contains("result"))
    return IncomingReply{id ? *id : Json(), std::move(object["result"])};
  return invalid_request(id, "invalid request: no 'method', 'result' or 'error'");
}

/// Returns nothing when "fds" is not a valid number of descriptors.
std::optional<std::size_t> declared_fds(const Json& object, std::size_t most) {
  const Json* fds = member(object, "fds");
  if (fds == nullptr) return 0;
  if (!fds->is_number_unsigned() || fds->get<std::uint64_t>() > most) return {};
  return fds->get<std::size_t>();
}

/// Replaces a schema that is given as an object by its text, because a model writes members in the
/// order of the schema.
void keep_order_of_schema(std::string_view line, Json& object) {
  static constexpr std::string_view kKeys[] = {"params", "sampling", "response_format",
                                               "json_schema", "schema"};
  Json* at = &object;
  for (const std::string_view key : kKeys) {
    const auto member = at->is_object() ? at->find(key) : at->end();
    if (member == at->end()) return;
    at = &*member;
  }
  if (!at->is_object()) return;
  if (auto text = object_in_source_order(line, kKeys)) *at = *std::move(text);
}

std::string dumped(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Writes the members of a message as text, in the order of their names: a Json object with these
/// members would copy the body.
class LineWriter {
 public:
  /// `id` is JSON, or empty for a message without one.
  explicit LineWriter(std::size_t fds, std::string_view id = {}) {
    if (fds > 0) add("fds", std::to_string(fds));
    if (!id.empty()) add("id", id);
    add("jsonrpc", R"("2.0")");
  }
  void add(std::string_view name, std::string_view value) {
    line_ += line_.empty() ? "{\"" : ",\"";
    line_ += name;
    line_ += "\":";
    line_ += value;
  }
  std::string end() && { return std::move(line_) + "}\n"; }

 private:
  std::string line_;
};

}  // namespace

namespace {

/// Finds "id" among the members of the outermost object, in a text that may end anywhere.
class IdFinder final : public nlohmann::json_sax<Json> {
 public:
  Json id() const { return id_; }

  bool null() override { return take(nullptr); }
  bool boolean(bool) override { return take(nullptr); }
  bool number_integer(number_integer_t value) override { return take(value); }
  bool number_unsigned(number_unsigned_t value) override { return take(value); }
  bool number_float(number_float_t, const string_t&) override { return take(nullptr); }
  bool string(string_t& value) override { return take(value); }
  bool binary(binary_t&) override { return take(nullptr); }
  bool start_object(std::size_t) override { return take(nullptr) && ++depth_ > 0; }
  bool start_array(std::size_t) override { return take(nullptr) && ++depth_ > 0; }
  bool end_object() override { return --depth_ > 0; }
  bool end_array() override { return --depth_ > 0; }
  bool key(string_t& name) override {
    is_next_ = depth_ == 1 && name == "id";
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  /// Returns false, which ends the search, when the value was that of "id".
  bool take(const Json& value) {
    if (is_next_ && is_id(value)) id_ = value;
    return !is_next_;
  }

  Json id_;
  std::size_t depth_ = 0;
  bool is_next_ = false;
};

Envelope parse_whole_line(std::string_view line, const Limits& limits) {
  if (const auto excess = exceeded_limit(line, limits))
    return reject_malformed("the line has " + *excess);
  Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded())
    return reject_malformed(fmt::format("the line of {} bytes is not JSON in UTF-8", line.size()));
  if (!object.is_object())
    return {.content = invalid_request(nullptr, "invalid request: one object per line, no batch")};
  const auto fds = declared_fds(object, limits.max_fds);
  if (!fds) {
    Envelope bad =
        reject_malformed(fmt::format("'fds' must be an integer from 0 to {}", limits.max_fds));
    // Matches no count of received descriptors, so the peer closes the connection.
    bad.fds = std::numeric_limits<std::size_t>::max();
    return bad;
  }
  keep_order_of_schema(line, object);
  return {.fds = *fds, .content = read_content(object)};
}

}  // namespace

Envelope parse_line(std::string_view line, const Limits& limits) {
  auto envelope = catch_request_errors(
      [&]() -> Result<Envelope> { return parse_whole_line(line, limits); }, Errc::MalformedMessage);
  if (envelope) return *std::move(envelope);
  return {.content = RejectedMessage{nullptr, envelope.error(), number_of(envelope.error().code)}};
}

Json id_of_partial_line(std::string_view begun) {
  IdFinder finder;
  (void)Json::sax_parse(begun, &finder);
  return finder.id();
}

std::string call_line(std::uint64_t id, const std::string& method, const Payload& params) {
  LineWriter line(params.fds.size(), std::to_string(id));
  line.add("method", dumped(method));
  line.add("params", dumped(params.body));
  return std::move(line).end();
}

std::string notification_line(const std::string& method, const Payload& params) {
  LineWriter line(params.fds.size());
  line.add("method", dumped(method));
  line.add("params", dumped(params.body));
  return std::move(line).end();
}

std::string result_line(const Json& id, const Payload& result) {
  LineWriter line(result.fds.size(), dumped(id));
  line.add("result", dumped(result.body));
  return std::move(line).end();
}

std::string error_line(const Json& id, const Error& error) {
  return rejection_line({id, error, number_of(error.code)});
}

std::string rejection_line(const RejectedMessage& refusal) {
  Json data = {{"code", std::string(name(refusal.error.code))},
               {"retryable", is_retryable(refusal.error.code)},
               {"scope", std::string(name(refusal.error.scope))}};
  if (refusal.error.retry_after_ms > 0) data["retry_after_ms"] = refusal.error.retry_after_ms;
  Json error = {
      {"code", refusal.number}, {"message", refusal.error.detail}, {"data", std::move(data)}};
  return dumped({{"error", std::move(error)}, {"id", refusal.id}, {"jsonrpc", "2.0"}}) + '\n';
}

}  // namespace leasehold::control
