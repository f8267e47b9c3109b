#include "worker/http/api/event_ids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "common/checksum.hpp"
#include "common/cli/print_error.hpp"
#include "worker/http/api/api_answer.hpp"

namespace leasehold::http {
namespace {

std::optional<std::uint32_t> number_of(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

constexpr std::size_t kChecksumDigits = 8;

/// 32 bits are enough to tell apart the few workers that one client meets.
std::string checksum_of(std::string_view text) {
  const std::uint64_t sum = Checksum::of(text.data(), text.size());
  return fmt::format("{:08x}", static_cast<std::uint32_t>(sum ^ (sum >> 32)));
}

bool is_checksum(std::string_view text) {
  return text.size() == kChecksumDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::optional<EventIds::Id> EventIds::parse(std::string_view text) {
  const auto dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto position = number_of(text.substr(0, dot));
  const auto index = number_of(text.substr(dot + 1));
  if (!position || !index) return std::nullopt;
  return Id{*position, *index};
}

Result<EventIds> EventIds::after(const std::optional<std::string>& last_event_id,
                                 std::string_view how_computed) {
  EventIds ids;
  ids.checksum_ = checksum_of(how_computed);
  if (!last_event_id) return ids;
  const std::string_view sent = *last_event_id;
  const auto dash = std::min(sent.find('-'), sent.size());
  const std::string_view checksum = sent.substr(std::min(dash + 1, sent.size()));
  ids.last_ = parse(sent.substr(0, dash));
  if (!ids.last_ || !is_checksum(checksum)) {
    return fail(Errc::BadRequest, fmt::format("Last-Event-ID is '{}'; send the id of an event of "
                                              "this request, or leave it out",
                                              printable(*last_event_id)));
  }
  if (checksum == ids.checksum_) return ids;
  return fail(Errc::RequestIdConflict,
              fmt::format("the event {} is of a text that was computed otherwise, and this worker "
                          "computes {}; begin the text again under another request_id",
                          *last_event_id, how_computed));
}

void EventIds::number(std::uint32_t position, ServerEvents& events) {
  if (position != next_.position) next_ = {position, 0};
  ServerEvents wanted;
  for (ServerEvent& event : events) {
    if (event.data != kDone) {
      const Id id{position, next_.index++};
      if (last_ && id <= *last_) continue;
      event.id = fmt::format("{}.{}-{}", id.position, id.index, checksum_);
    }
    wanted.push_back(std::move(event));
  }
  events = std::move(wanted);
}

}  // namespace leasehold::http
