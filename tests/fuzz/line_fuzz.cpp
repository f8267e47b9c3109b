// Fuzzes a control connection: bytes and descriptors become lines, envelopes and messages. Input:
// one byte that selects a message, then the stream in deliveries of recvmsg. A byte 0x01 ends a
// delivery; 0x02 ends one that carries a descriptor.
#include <fcntl.h>

#include <cstdlib>

#include "ipc/control/envelope.hpp"
#include "ipc/control/events.hpp"
#include "ipc/control/inbox.hpp"
#include "ipc/control/lease_token.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/unit/ipc/control/message_samples.hpp"

using namespace leasehold;
using namespace leasehold::control;

namespace {

constexpr Limits kLimits{.max_line_bytes = 4096, .max_depth = 16, .max_fds = 3};

/// A reply is exactly one line and parses as a reply.
void check_reply(const std::string& line) {
  fuzz::check(line.ends_with('\n') && line.find('\n') == line.size() - 1);
  const Envelope answer = parse_line(std::string_view(line).substr(0, line.size() - 1),
                                     {.max_line_bytes = 1 << 20, .max_depth = 64});
  fuzz::check(std::holds_alternative<IncomingReply>(answer.content));
}

/// A parsed message stays the same when it is written and parsed again.
void read_message(const testing::MessageSample& sample, const Json& params) {
  const Result<Json> once = sample.round_trip(params);
  if (!once) return check_reply(error_line(1, once.error()));
  const Result<Json> twice = sample.round_trip(*once);
  fuzz::check(twice && *twice == *once);
}

void read_line(const Line& line, const testing::MessageSample& sample) {
  fuzz::check(line.text.find('\n') == std::string::npos);
  Envelope envelope = parse_line(line.text, kLimits);
  if (const auto* refusal = std::get_if<RejectedMessage>(&envelope.content)) {
    check_reply(rejection_line(*refusal));
  } else if (auto* call = std::get_if<IncomingCall>(&envelope.content)) {
    read_message(sample, call->params);
    check_reply(result_line(call->id, {std::move(call->params), {}}));
  } else if (auto* reply = std::get_if<IncomingReply>(&envelope.content)) {
    if (reply->result) read_message(sample, *reply->result);
  } else {
    read_message(sample, std::get<IncomingNotification>(envelope.content).params);
  }
  if (const Json json = Json::parse(line.text, nullptr, false); !json.is_discarded())
    (void)events::from_json(json);
  (void)verify_token({}, line.text);
}

std::vector<UniqueFd> one_descriptor() {
  std::vector<UniqueFd> fds;
  fds.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return fds;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input{{data, size}};
  const auto& samples = testing::message_samples();
  const testing::MessageSample& sample = samples[input.byte() % samples.size()];
  Inbox inbox(kLimits);
  std::size_t given = 0;
  std::size_t claimed = 0;
  while (!input.empty()) {
    const fuzz::Delivery delivery = input.delivery();
    if (delivery.bytes.empty()) continue;
    given += delivery.with_descriptor ? 1 : 0;
    inbox.add(delivery.bytes,
              delivery.with_descriptor ? one_descriptor() : std::vector<UniqueFd>{});
    Result<std::optional<Line>> line = inbox.next();
    for (; line && *line; line = inbox.next()) {
      claimed += (*line)->fds.size();
      read_line(**line, sample);
    }
    if (!line) break;  // the connection ends
  }
  fuzz::check(claimed <= given);
  return 0;
}
