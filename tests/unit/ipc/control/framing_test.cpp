#include <catch2/catch.hpp>
#include <regex>

#include "ipc/control/transport/excess.hpp"
#include "peer_fixture.hpp"

using namespace leasehold;
using control::Limits;
using leasehold::testing::PeerFixture;
using nlohmann::json;

namespace {

const std::string kPing = R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1}})"
                          "\n";

/// Checks that the peer answers the line with this error and a null id, and goes on.
void check_refused(const std::string& line, int number, const std::string& code) {
  CAPTURE(line.substr(0, 80));
  PeerFixture bench;
  bench.other->send_all(line + "\n");
  const json answer = bench.other->read_required();
  CHECK(answer["id"] == nullptr);
  CHECK(answer["error"]["code"] == number);
  CHECK(answer["error"]["data"]["code"] == code);
  CHECK(answer["error"]["data"]["retryable"] == false);
  bench.other->send(kPing);
  CHECK(bench.other->read_required()["result"] == json{{"a", 1}});
  CHECK(bench.seen.calls == std::vector<std::string>{"ping"});
}

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

}  // namespace

TEST_CASE("framing: a line that is not JSON in UTF-8 gets an error and the connection goes on") {
  for (const std::string line :
       {"", "{", "hello", R"({"jsonrpc":"2.0"} {})", "{\"jsonrpc\":\"2.0\",\"method\":\"a\xff\"}",
        "{\"jsonrpc\":\"2.0\",\"method\":\"\xc0\xaf\"}", R"({"jsonrpc":"2.0","method":"\ud800"})",
        R"({"jsonrpc":"2.0","method":"a","params":{"x":1e999}})"})
    check_refused(line, -32700, "MalformedMessage");
}

TEST_CASE("framing: a line nested too deep is refused, braces inside text do not count") {
  for (const std::string& line : {nested(10'000), nested(33), std::string(500'000, '[')})
    check_refused(line, -32700, "MalformedMessage");
  PeerFixture bench;
  const std::string text = std::string(100, '{') + R"(\")" + std::string(100, '[');
  bench.other->send(R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"t":")" + text + "\"}}\n");
  CHECK(bench.other->read_required()["result"]["t"] ==
        std::string(100, '{') + '"' + std::string(100, '['));
  bench.other->send(R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"t":)" + nested(30) + "}}\n");
  CHECK(bench.other->read_required().contains("result"));
}

TEST_CASE("framing: a line of too many values is refused before it is parsed") {
  const std::string head = R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[)";
  const auto line_of = [&head](const char* value, int count) {
    std::string line = head;
    for (int i = 0; i < count; ++i) line += value + std::string(",");
    return line + "1]}}";
  };
  check_refused(line_of("[]", 140'000), -32700, "MalformedMessage");

  const Limits limits{.max_line_bytes = 1 << 20, .max_values = 1 << 15};
  for (const char* value : {"1", "-1.5", "true", "null"}) {
    CAPTURE(value);
    PeerFixture bench(limits);
    bench.other->send_all(line_of(value, 131'100) + "\n");
    CHECK(bench.other->read_required()["error"]["data"]["code"] == "MalformedMessage");
    bench.other->send_all(line_of(value, 131'000) + "\n");
    CHECK(bench.other->read_required().contains("result"));
  }
  PeerFixture bench(limits);
  bench.other->send_all(R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"a":")" +
                        std::string(400'000, '1') + "\"}}\n");  // one text
  CHECK(bench.other->read_required().contains("result"));
}

TEST_CASE("framing: members count like objects, arrays and texts") {
  const auto excess_of_members = [](int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += "\"" + std::to_string(i) + "\":0,";
    text.back() = '}';
    return control::exceeded_limit(text, control::kRequestLimits).has_value();
  };
  CHECK(excess_of_members(25'000));
  CHECK(excess_of_members(15'000));
  CHECK_FALSE(excess_of_members(14'000));
  CHECK_FALSE(control::exceeded_limit("{\"a\":\"" + std::string(400'000, ':') + "\"}",
                                      control::kRequestLimits));
}

TEST_CASE("framing: JSON that is not a request is an invalid request") {
  for (const std::string line :
       {"[]", R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])", "7", "null", "{}",
        R"({"method":"ping"})", R"({"jsonrpc":"1.0","method":"ping"})", R"({"jsonrpc":"2.0"})",
        R"({"jsonrpc":"2.0","method":7})", R"({"jsonrpc":"2.0","method":"m","params":[1]})",
        R"({"jsonrpc":"2.0","id":1.5,"method":"m"})", R"({"jsonrpc":"2.0","id":null,"method":"m"})",
        R"({"jsonrpc":"2.0","id":{},"method":"m"})"})
    check_refused(line, -32600, "BadRequest");
}

TEST_CASE("framing: the error for an invalid request has its id") {
  PeerFixture bench;
  bench.other->send_line(R"({"jsonrpc":"2.0","id":"x","method":7})");
  const json answer = bench.other->read_required();
  CHECK(answer["id"] == "x");
  CHECK(answer["error"]["code"] == -32600);
}

TEST_CASE("framing: ids are text or integers and the reply repeats them") {
  PeerFixture bench;
  for (const json& id : {json("a-1"), json(0), json(-7), json(18446744073709551615ull)}) {
    bench.other->send(json{{"jsonrpc", "2.0"}, {"id", id}, {"method", "m"}}.dump() + "\n");
    CHECK(bench.other->read_required()["id"] == id);
  }
}

TEST_CASE("framing: an id or a method that is too long is refused, and no reply repeats it") {
  PeerFixture bench;
  const auto send = [&](std::size_t id_bytes, std::size_t method_bytes) {
    bench.other->send_line(json{{"jsonrpc", "2.0"},
                                {"id", std::string(id_bytes, 'i')},
                                {"method", std::string(method_bytes, 'm')}}
                               .dump());
    return bench.other->read_required();
  };
  CHECK(send(128, 1)["id"] == std::string(128, 'i'));
  const json long_id = send(129, 1);
  CHECK(long_id["id"] == nullptr);
  CHECK(long_id["error"]["data"]["code"] == "BadRequest");
  const json long_method = send(1, 129);
  CHECK(long_method["id"] == "i");
  CHECK(long_method["error"]["data"]["code"] == "BadRequest");
  CHECK(long_method.dump().size() < 400);
}

TEST_CASE("framing: a peer can allow longer lines later, also in the middle of one") {
  PeerFixture bench({.max_line_bytes = 100, .line_hint = "knock first"});
  const std::string line = json{{"jsonrpc", "2.0"},
                                {"id", 1},
                                {"method", "m"},
                                {"params", {{"t", std::string(200, 'x')}}}}
                               .dump() +
                           "\n";
  bench.other->send(line.substr(0, 90));
  bench.io.poll();
  bench.peer->set_limits({.max_line_bytes = 300});
  bench.other->send(line.substr(90));
  CHECK(bench.other->read_required()["id"] == 1);

  PeerFixture strict({.max_line_bytes = 100, .line_hint = "knock first"});
  strict.other->send(line);
  CHECK_THAT(strict.other->read_required()["error"]["message"].get<std::string>(),
             Catch::Contains("a line may have 100 bytes") && Catch::Contains("knock first"));
}

TEST_CASE("framing: the error for a line that is too long has its id, where that has arrived") {
  const std::string filler(400, 'x');
  const auto answer_to = [](const std::string& line) {
    PeerFixture bench({.max_line_bytes = 300});
    bench.other->send(line);
    const json answer = bench.other->read_required();
    CHECK(answer["error"]["data"]["code"] == "MessageTooLarge");
    return answer["id"];
  };
  CHECK(answer_to(R"({"id":7,"jsonrpc":"2.0","method":"m","params":{"t":")" + filler) == 7);
  CHECK(answer_to(R"({"jsonrpc":"2.0","method":"m","id":"a-1","params":{"t":")" + filler) == "a-1");
  CHECK(answer_to(R"({"params":{"id":3,"t":[{"id":4}]},"id":5,"t":")" + filler + "\"}\n") == 5);
  // None is found in other places or forms.
  CHECK(answer_to(R"({"params":{"id":3,"t":")" + filler) == nullptr);
  CHECK(answer_to(R"([{"id":3,"t":")" + filler) == nullptr);
  CHECK(answer_to(R"({"id":{"id":3},"t":")" + filler) == nullptr);
  CHECK(answer_to(R"({"id":")" + filler) == nullptr);
  CHECK(answer_to(filler) == nullptr);
}

TEST_CASE("framing: lines may arrive in pieces and several at once") {
  PeerFixture bench;
  std::string text;
  for (int i = 0; i < 50; ++i) text += kPing;
  const std::string half = kPing.substr(0, 20);
  for (const char c : half) {
    bench.other->send(std::string(1, c));
    bench.io.restart();
    bench.io.poll();
  }
  bench.other->send(kPing.substr(20) + text);
  for (int i = 0; i < 51; ++i) CHECK(bench.other->read_required()["result"] == json{{"a", 1}});
}

TEST_CASE("framing: an endless line gets an error, ends the connection and is not stored") {
  PeerFixture bench;
  const std::string flood(10 << 20, 'x');
  const std::size_t taken = bench.other->send_all(flood);
  CHECK(taken < 3u << 20);  // the limit plus the socket buffers
  const json answer = bench.other->read_required();
  CHECK(answer["error"]["data"]["code"] == "MessageTooLarge");
  CHECK_FALSE(bench.other->read());
  bench.run_until_closed();
  CHECK(bench.seen.closed[0].code == Errc::MessageTooLarge);
}

TEST_CASE("framing: the limit applies to each line") {
  PeerFixture bench({.max_line_bytes = kPing.size() - 1});
  bench.other->send(kPing);
  CHECK(bench.other->read_required().contains("result"));
  bench.other->send(' ' + kPing);
  CHECK(bench.other->read_required()["error"]["data"]["code"] == "MessageTooLarge");
  bench.run_until_closed();
}

TEST_CASE("framing: unexpected replies are ignored") {
  PeerFixture bench;
  bench.other->send_line(R"({"jsonrpc":"2.0","id":99,"result":{}})");
  bench.other->send_line(R"({"jsonrpc":"2.0","id":"x","result":{}})");
  bench.other->send_line(R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}})");
  bench.other->send(kPing);
  CHECK(bench.other->read_required()["id"] == 1);
  CHECK(bench.seen.closed.empty());
}

TEST_CASE("framing: a peer without on_call answers UnknownMethod") {
  boost::asio::io_context io;
  auto [socket, bare] = leasehold::testing::socket_and_raw_fd(io);
  leasehold::testing::RawSocket other(io, std::move(bare));
  const auto peer = control::Peer::create(std::move(socket), {});
  peer->start();
  other.send(kPing);
  const json answer = other.read_required();
  CHECK(answer["id"] == 1);
  CHECK(answer["error"]["code"] == -32601);
  CHECK(answer["error"]["data"]["code"] == "UnknownMethod");
}

TEST_CASE("framing: the schema of a request arrives as text, with its members in source order") {
  PeerFixture bench;
  const auto answered = [&bench](const std::string& format) {
    bench.other->send(R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"sampling":{)" + format +
                      "}}}\n");
    return bench.other->read_required()["result"]["sampling"];
  };
  const std::string schema =
      R"({"type":"object","properties":{"z":{"enum":["\"",-1,2.50,true,null,[],{}]},"a":{},"é":[1,[2]]},"additionalProperties":false})";
  const std::string spaced = std::regex_replace(schema, std::regex(","), " , ");
  const auto ask = [](const std::string& value) {
    return R"("response_format":{"type":"json_schema","schema":{"y":1,"b":2},"json_schema":)"
           R"({"strict":true,"x":[{"schema":{"y":1,"b":2}}],"schema":)" +
           value + R"(,"name":"n"}})";
  };
  for (const std::string& text : {schema, spaced}) {
    const json format = answered(ask(text))["response_format"];
    CHECK(format["json_schema"]["schema"] == schema);
    CHECK(format["json_schema"]["x"][0]["schema"].is_object());
    CHECK(format["schema"].is_object());
  }
  CHECK(answered(ask("[1]"))["response_format"]["json_schema"]["schema"] == json{1});
  CHECK(answered(R"("response_format":7)")["response_format"] == 7);
}
