/// One request and three hosts, moved by hand.
#pragma once

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tools/gateway/decide/text_continuation.hpp"

namespace leasehold::gateway::testing {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline const std::string kIdentity = "sha256:" + std::string(64, '1') + "/int8/f16/1";
inline const std::string kOtherArithmetic = "sha256:" + std::string(64, '1') + "/f32/f16/1";
inline const std::string kOtherModel = "sha256:" + std::string(64, '2') + "/int8/f16/1";

/// The group of one token, whose event is "data: TOKEN".
inline std::string group(std::uint32_t choice, std::uint32_t position, TokenId token) {
  return fmt::format("data: {}\n: t {} {} {}\n\n", token, choice, position, token);
}
inline const std::string kEnding = "data: [DONE]\n\n: e\n\n";

struct GatewayCase {
  explicit GatewayCase(ContinuationTerms terms = {.model = "m"},
                       Duration silent_after = seconds(1000))
      : hosts(*HostTable::create({"a:1", "b:1", "c:1"}, silent_after)), text(std::move(terms)) {
    for (std::uint64_t i = 0; i < 3; ++i) report(HostId{i});
  }

  void report(HostId host, std::string_view code = "", const std::string& identity = kIdentity) {
    hosts.reported(host,
                   {.name = "h",
                    .models = {{"m", identity}},
                    .ready = code.empty(),
                    .code = std::string(code)},
                   now);
  }
  void report_asleep(HostId host) {
    hosts.reported(
        host,
        {.name = "h", .models = {{"m", kIdentity}}, .ready = true, .code = "", .asleep = true},
        now);
  }

  /// Passes an event; the actions of this step replace the earlier ones.
  void on(const TextEvent& event) {
    actions.clear();
    text.on(event, hosts, now, actions);
    for (const TextAction& action : actions) {
      if (const auto* open = std::get_if<OpenHost>(&action)) opened = *open;
      if (const auto* bytes = std::get_if<Forward>(&action)) client += bytes->bytes;
    }
  }
  void bytes(AttemptId attempt, const std::string& sent) { on(HostBytes{attempt, sent}); }
  void accept(AttemptId attempt, const std::string& identity = kIdentity) {
    on(HostAccepted{attempt, identity});
  }
  void wait(Duration duration) {
    now = now + duration;
    on(TimerFired{});
  }

  /// Two beats are missing; returns the successor.
  OpenHost fall_silent() {
    wait(milliseconds(999));
    CHECK(actions.empty());
    wait(milliseconds(1));
    CHECK(actions.empty());
    wait(milliseconds(50));
    return only<OpenHost>();
  }

  /// Begins the text on a host that has accepted it; returns the exchange.
  AttemptId begin() {
    on(RequestArrived{});
    accept(opened.attempt);
    return opened.attempt;
  }

  template <class T>
  std::vector<T> all() const {
    std::vector<T> found;
    for (const TextAction& action : actions)
      if (const auto* one = std::get_if<T>(&action)) found.push_back(*one);
    return found;
  }
  template <class T>
  T only() const {
    const std::vector<T> found = all<T>();
    REQUIRE(found.size() == 1);
    return found[0];
  }

  TimePoint now{1'000'000'000};
  HostTable hosts;
  TextContinuation text;
  TextActions actions;
  OpenHost opened;     ///< The newest.
  std::string client;  ///< What was forwarded.
};

inline HostLost lost(AttemptId attempt) {
  return {attempt, Error{Errc::ConnectionLost, "host a closed the connection"}};
}

}  // namespace leasehold::gateway::testing
