// Fuzzes a control connection: bytes and descriptors become lines, envelopes and messages. Input:
// one byte that selects a message, then the stream in deliveries of recvmsg. A byte 0x01 ends a
// delivery; 0x02 ends one that carries a descriptor.
#include <fcntl.h>

#include <algorithm>

#include "ipc/control/events.hpp"
#include "ipc/control/tokens/lease_token.hpp"
#include "ipc/control/transport/envelope.hpp"
#include "ipc/control/transport/inbox.hpp"
#include "tests/fuzz/allocations.hpp"
#include "tests/fuzz/input.hpp"
#include "tests/unit/ipc/control/message_samples.hpp"

using namespace leasehold;
using namespace leasehold::control;

namespace {

constexpr Limits kLimits{.max_line_bytes = 4096, .max_depth = 16, .max_fds = 3};

/// The worker's door charges for a line by its bytes before it is parsed (control::weight_of_line).
/// So parsing allocates no more than this for each unit, whatever the bytes are.
constexpr std::size_t kMaxBytesPerWeight = 128 << 10;

struct Size {
  std::size_t nodes = 0;
  std::size_t depth = 0;
};

Size size_of(const Json& json) {
  Size all{.nodes = 1, .depth = 0};
  if (!json.is_structured()) return all;
  for (const Json& part : json) {
    const Size inner = size_of(part);
    all.nodes += inner.nodes;
    all.depth = std::max(all.depth, inner.depth);
  }
  ++all.depth;
  return all;
}

void check_size(const Json& json, std::string_view line) {
  const Size size = size_of(json);
  fuzz::check(size.nodes <= line.size());
  fuzz::check(size.depth <= kLimits.max_depth);
}

/// Runs a part of what a line causes.
template <class Work>
auto within_weight(std::string_view line, Work work) {
  const std::size_t before = fuzz::allocated_bytes();
  auto result = work();
  fuzz::check(fuzz::allocated_bytes() - before <= weight_of_line(line.size()) * kMaxBytesPerWeight);
  return result;
}

/// A reply is exactly one line and parses as a reply.
void check_reply(const std::string& line) {
  fuzz::check(line.ends_with('\n') && line.find('\n') == line.size() - 1);
  const Envelope answer = parse_line(std::string_view(line).substr(0, line.size() - 1),
                                     {.max_line_bytes = 1 << 20, .max_depth = 64});
  fuzz::check(std::holds_alternative<IncomingReply>(answer.content));
}

/// A parsed message stays the same when it is written and parsed again.
void read_message(const testing::MessageSample& sample, const Json& params, std::string_view line) {
  check_size(params, line);
  const Result<Json> once = within_weight(line, [&] { return sample.round_trip(params); });
  if (!once) return check_reply(error_line(1, once.error()));
  const Result<Json> twice = sample.round_trip(*once);
  fuzz::check(twice && *twice == *once);
}

void read_line(const Line& line, const testing::MessageSample& sample) {
  fuzz::check(line.text.find('\n') == std::string::npos);
  Envelope envelope = within_weight(line.text, [&] { return parse_line(line.text, kLimits); });
  if (const auto* refusal = std::get_if<RejectedMessage>(&envelope.content)) {
    check_reply(rejection_line(*refusal));
  } else if (auto* call = std::get_if<IncomingCall>(&envelope.content)) {
    read_message(sample, call->params, line.text);
    check_reply(result_line(call->id, {std::move(call->params), {}}));
  } else if (auto* reply = std::get_if<IncomingReply>(&envelope.content)) {
    if (reply->result) read_message(sample, *reply->result, line.text);
  } else {
    read_message(sample, std::get<IncomingNotification>(envelope.content).params, line.text);
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
