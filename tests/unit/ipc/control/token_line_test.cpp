// The short way of a token's line and the general one agree.
#include "ipc/control/messages/token_line.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "ipc/control/transport/envelope.hpp"

using namespace leasehold;
using namespace leasehold::control;

namespace {

const RequestId kRequest{"req-00a:b.c"};

wire::TokenEmitted token_with(std::string text) {
  return {.request = kRequest, .token = 17, .position = 4, .text = std::move(text)};
}

/// As a peer reads the line; nothing unless it is a valid token.
std::optional<wire::TokenEmitted> read_in_general(std::string_view line) {
  Envelope envelope = parse_line(line, {});
  const auto* notification = std::get_if<IncomingNotification>(&envelope.content);
  if (notification == nullptr || notification->method != wire::TokenEmitted::kMethod) return {};
  const auto token = wire::TokenEmitted::from_json(notification->params);
  return token ? std::optional(*token) : std::nullopt;
}

}  // namespace

TEST_CASE("token line: it has the bytes of the general writer") {
  const std::string text =
      GENERATE(as<std::string>(), "", " a", "say \"no\"", "C:\\", "1\n2", "\x7F",
               std::string("\0\x1F", 2), "h\xC3\xA9", "\xC3", "a\xE2\x82", "~}]");
  wire::TokenEmitted token = token_with(text);
  token.token = GENERATE(0, 2'147'483'647);
  token.position = GENERATE(0u, 4'294'967'295u);
  CAPTURE(text);
  CHECK(token_line(token) ==
        notification_line(std::string(wire::TokenEmitted::kMethod), {token.to_json(), {}}));
}

TEST_CASE("line: its members are in the order of their names, and name the descriptors") {
  Payload payload{.body = {{"b", "\xC3"}, {"a", 1}}, .fds = {}};
  CHECK(result_line("id", payload) ==
        "{\"id\":\"id\",\"jsonrpc\":\"2.0\",\"result\":{\"a\":1,\"b\":\"\xEF\xBF\xBD\"}}\n");
  payload.body = nullptr;
  payload.fds.resize(2);
  CHECK(call_line(7, "m", payload) ==
        "{\"fds\":2,\"id\":7,\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":null}\n");
  CHECK(notification_line("m", payload) ==
        "{\"fds\":2,\"jsonrpc\":\"2.0\",\"method\":\"m\",\"params\":null}\n");
  CHECK(error_line(nullptr, {Errc::TimedOut, "late"}).starts_with("{\"error\":{"));
}

TEST_CASE("token line: a token with logprobs has none") {
  wire::TokenEmitted token = token_with("a");
  token.logprob = -0.5f;
  CHECK_FALSE(token_line(token));
  token.logprob.reset();
  token.top_logprobs.push_back({1, -0.5f});
  CHECK_FALSE(token_line(token));
}

TEST_CASE("token line: a line that was written is read, unless the text needs an escape") {
  for (const char* text : {"", " a", "~}]", "'", "{}"}) {
    std::string line = token_line(token_with(text)).value();
    line.pop_back();
    const auto token = read_token_line(line, kRequest);
    REQUIRE(token);
    CHECK(token->to_json() == token_with(text).to_json());
  }
  for (const char* text : {"\"", "\\", "\n", "\xC3\xA9"}) {
    std::string line = token_line(token_with(text)).value();
    line.pop_back();
    CHECK_FALSE(read_token_line(line, kRequest));
    CHECK(read_in_general(line));
  }
}

TEST_CASE("token line: each line with one byte changed or removed is read as in general") {
  std::string line = token_line(token_with(" a0")).value();
  line.pop_back();
  int read = 0;
  const auto check = [&](const std::string& changed) {
    const auto token = read_token_line(changed, kRequest);
    if (!token) return;
    ++read;
    const auto general = read_in_general(changed);
    INFO(changed);
    REQUIRE(general);
    CHECK(token->to_json() == general->to_json());
  };
  for (std::size_t at = 0; at < line.size(); ++at) {
    std::string removed = line;
    check(removed.erase(at, 1));
    for (const char byte : {'0', '9', '-', '"', '\\', '}', ' ', 'e', '.', '\n', '\x80'}) {
      std::string changed = line;
      changed[at] = byte;
      check(changed);
      std::string longer = line;
      check(longer.insert(at, 1, byte));
    }
  }
  CHECK(read > 20);
  CHECK_FALSE(read_token_line(line + "}", kRequest));
  CHECK_FALSE(read_token_line(line, {"req-00a:b.d"}));
}

TEST_CASE("token line: numbers out of range are left to the general parser") {
  const auto line_of = [](const std::string& position, const std::string& token) {
    return R"({"jsonrpc":"2.0","method":"token.emitted","params":{"position":)" + position +
           R"(,"request":")" + kRequest.value + R"(","text":"","token":)" + token + "}}";
  };
  CHECK(read_token_line(line_of("4294967295", "2147483647"), kRequest));
  CHECK_FALSE(read_token_line(line_of("4294967296", "0"), kRequest));
  CHECK_FALSE(read_token_line(line_of("0", "2147483648"), kRequest));
  CHECK_FALSE(read_token_line(line_of("00", "0"), kRequest));
  CHECK_FALSE(read_token_line(line_of("-0", "0"), kRequest));
  CHECK_FALSE(read_token_line(line_of("", "0"), kRequest));
}
