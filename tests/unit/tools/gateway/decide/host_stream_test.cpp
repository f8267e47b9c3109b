// The parser of a host's stream: whole groups, beats and endings, in any pieces; typed errors.
#include <catch2/catch.hpp>

#include "tools/gateway/decide/host_stream.hpp"

using namespace leasehold;
using namespace leasehold::gateway;

namespace {

struct Read {
  Result<void> done;
  std::vector<HostEvent> events;

  template <class T>
  const T& as(std::size_t i) const {
    REQUIRE(events.size() > i);
    REQUIRE(std::holds_alternative<T>(events[i]));
    return std::get<T>(events[i]);
  }
};

Read read(std::string_view bytes, AnswerForm form = AnswerForm::Events,
          const HostStreamLimits& limits = {.choices = 2}, const EmittedTokens& known = {}) {
  HostStreamParser parser(form, limits, known);
  Read result;
  result.done = parser.read(bytes, result.events);
  return result;
}

Errc code_of(const Read& read) {
  REQUIRE_FALSE(read.done.has_value());
  CHECK_FALSE(read.done.error().detail.empty());
  return read.done.error().code;
}

constexpr std::string_view kStream =
    ": b\n\n"
    "data: {\"role\":1}\n\nevent: delta\ndata: a\n: t 0 0 7\n\n"
    ": t 1 0 8\n\n"
    "data: b\n\n: keep-alive\n\n: t 0 1 9\n\n"
    "data: end\n\ndata: [DONE]\n\n: e\n\n"
    "data: more\n\n";

void check_events(const Read& read) {
  REQUIRE(read.done.has_value());
  REQUIRE(read.events.size() == 5);
  CHECK(std::holds_alternative<Beat>(read.events[0]));
  CHECK(read.as<TokenGroup>(1).bytes == "data: {\"role\":1}\n\nevent: delta\ndata: a\n\n");
  CHECK(read.as<TokenGroup>(1).token == 7);
  CHECK(read.as<TokenGroup>(2).choice == 1);
  CHECK(read.as<TokenGroup>(2).bytes.empty());
  CHECK(read.as<TokenGroup>(3).position == 1);
  CHECK(read.as<TokenGroup>(3).bytes == "data: b\n\n");
  CHECK(read.as<EndingGroup>(4).bytes == "data: end\n\ndata: [DONE]\n\n");
}

}  // namespace

TEST_CASE("host stream: blocks up to a mark are one group, without comments") {
  check_events(read(kStream));
}

TEST_CASE("host stream: the same events come from every pair of pieces") {
  for (std::size_t cut = 0; cut <= kStream.size(); ++cut) {
    HostStreamParser parser(AnswerForm::Events, {.choices = 2}, {});
    Read result;
    result.done = parser.read(kStream.substr(0, cut), result.events);
    REQUIRE(result.done.has_value());
    result.done = parser.read(kStream.substr(cut), result.events);
    CAPTURE(cut);
    check_events(result);
    CHECK(parser.has_ended());
  }
}

TEST_CASE("host stream: an incomplete group is not an event") {
  CHECK(read("data: a\n\ndata: b\n\n").events.empty());
  CHECK(read("data: a\n: t 0 0 7\n").events.empty());
}

TEST_CASE("host stream: positions count on from the known tokens") {
  const EmittedTokens known{{5, 6}, {}};
  CHECK(
      read(": t 0 2 1\n\n: t 1 0 1\n\n", AnswerForm::Events, {.choices = 2}, known).events.size() ==
      2);
  CHECK(code_of(read(": t 0 0 5\n\n", AnswerForm::Events, {.choices = 2}, known)) ==
        Errc::MalformedMessage);
}

TEST_CASE("host stream: a mark names the adapter of a choice, and is in no group") {
  const std::string digest(64, 'a');
  const Read result = read("data: a\n\n: a 1 " + digest + "\n\n: t 0 0 7\n\n");
  REQUIRE(result.events.size() == 2);
  CHECK(result.as<AdapterNamed>(0).choice == 1);
  CHECK(result.as<AdapterNamed>(0).digest == digest);
  CHECK(result.as<TokenGroup>(1).bytes == "data: a\n\n");
  for (const std::string& wrong :
       {"2 " + digest, "0 " + digest + " x", "0 " + digest.substr(1), std::string("0"), digest}) {
    CAPTURE(wrong);
    CHECK(code_of(read(": a " + wrong + "\n\n")) == Errc::MalformedMessage);
  }
}

TEST_CASE("host stream: an error keeps its code, its pause and the event") {
  const Read result = read("data: {\"error\":1}\n\n: x Draining 1500\n\n");
  const auto& ended = result.as<HostError>(0);
  CHECK(ended.error.code == Errc::Draining);
  CHECK(ended.error.retry_after_ms == 1500);
  CHECK(ended.bytes == "data: {\"error\":1}\n\n");
}

TEST_CASE("host stream: an unknown error code is that of a broken host") {
  const Read result = read(": x FromTheFuture 0\n\n");
  CHECK(result.as<HostError>(0).error.code == Errc::SystemError);
  CHECK(result.as<HostError>(0).error.detail.contains("FromTheFuture"));
}

TEST_CASE("host stream: a document is the data of one event") {
  const auto form = AnswerForm::Document;
  const Read answer = read(": t 0 0 1\n\nevent: answer\ndata: {\"a\":1}\n\n: e\n\n", form);
  CHECK(answer.as<EndingGroup>(1).bytes == "{\"a\":1}");
  const Read error = read("event: error\ndata: {\"e\":1}\n\n: x TimedOut 0\n\n", form);
  CHECK(error.as<HostError>(0).bytes == "{\"e\":1}");
  for (const char* wrong : {"data: x\n: t 0 0 1\n\n", ": e\n\n", "event: answer\n\n: e\n\n",
                            "event: answer\ndata: 1\ndata: 2\n\n: e\n\n",
                            "event: answer\ndata: 1\n\ndata: 2\n\n: e\n\n"}) {
    CAPTURE(wrong);
    CHECK(code_of(read(wrong, form)) == Errc::MalformedMessage);
  }
}

TEST_CASE("host stream: marks of another form are typed errors") {
  for (const char* wrong :
       {": t\n\n", ": t 0 0\n\n", ": t 0 0 1 2\n\n", ": t 0 0 -1\n\n", ": t 0 0 2147483648\n\n",
        ": t  0 0 1\n\n", ": t 0 0 1\r\n\n", ": t 2 0 1\n\n", ": t 0 1 1\n\n",
        ": t 0 0 1\n: t 0 1 1\n\n", ": t 0 0 1\n: e\n\n", ": b x\n\n", ": e 1\n\n", ": x\n\n",
        ": x Draining\n\n", ": x Draining -1\n\n", ": x Draining 86400001\n\n",
        ": t 0 0 1\n\n: t 0 0 1\n\n"}) {
    CAPTURE(wrong);
    CHECK(code_of(read(wrong)) == Errc::MalformedMessage);
  }
}

TEST_CASE("host stream: the largest token is one below 2^31") {
  CHECK(read(": t 0 0 2147483647\n\n").as<TokenGroup>(0).token == 2147483647);
}

TEST_CASE("host stream: other comments are ignored") {
  const Read result = read(":\n\n: time\n\n:t 0 0 1\n\n: hello\ndata: a\n: t 0 0 1\n\n\n\n\n");
  CHECK(result.done.has_value());
  REQUIRE(result.events.size() == 1);
  CHECK(result.as<TokenGroup>(0).bytes == "data: a\n\n");
}

TEST_CASE("host stream: a line, a group and an ending have limits") {
  const HostStreamLimits limits{.choices = 1,
                                .max_line_bytes = 20,
                                .max_group_bytes = 30,
                                .max_ending_bytes = 60,
                                .max_document_bytes = 40};
  const auto form = AnswerForm::Events;
  const std::string event = "data: 12345678901234\n\n";  // 22 bytes
  CHECK(read(event + ": t 0 0 1\n\n", form, limits).done.has_value());
  CHECK(code_of(read("data: 123456789012345", form, limits)) == Errc::MessageTooLarge);
  CHECK(code_of(read(event + event + ": t 0 0 1\n\n", form, limits)) == Errc::MessageTooLarge);
  CHECK(read(event + event + ": e\n\n", form, limits).done.has_value());
  CHECK(code_of(read(event + event + event, form, limits)) == Errc::MessageTooLarge);
  CHECK(read("event: answer\ndata: 12345678901234\n\n: e\n\n", AnswerForm::Document, limits)
            .done.has_value());
  CHECK(code_of(read("data: 12345678901234567890123456789012345", AnswerForm::Document, limits)) ==
        Errc::MessageTooLarge);
}

TEST_CASE("host stream: nothing is read after an error") {
  HostStreamParser parser(AnswerForm::Events, {}, {});
  std::vector<HostEvent> events;
  CHECK_FALSE(parser.read(": t 0 0 1\n\n: t 5 0 1\n\n", events).has_value());
  CHECK(events.size() == 1);
  CHECK(parser.has_ended());
  CHECK(parser.read(": t 0 1 1\n\n", events).has_value());
  CHECK(events.size() == 1);
}
